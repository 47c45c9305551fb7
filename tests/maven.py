"""Resolves the jars of a server under test by Maven, once; they stay under `build`."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from alone import alone

from cogwork.bench.servers.process import Missing, program

if TYPE_CHECKING:
    from pathlib import Path

RESOLVE_TIMEOUT_S = 90
"""Less than a test has: behind a slow network the tests are skipped, until Maven has it all."""


def resolved(cache: Path, pom: str, what: str) -> Path:
    """Return the directory of the jars.

    Args:
        cache: Where they are kept.
        pom: The project that depends on them.
        what: Whose they are, for people.

    Raises:
        Missing: Java or Maven is, or the registry cannot be reached.
    """
    with alone(cache):
        done = cache / "jars"
        if not done.is_dir():
            _resolve(cache, pom, what).rename(done)
        return done


def _resolve(cache: Path, pom: str, what: str) -> Path:
    program("java", "default-jre-headless")
    maven = program("mvn", "maven")
    (cache / "pom.xml").write_text(pom)
    partial = cache / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        subprocess.run(
            command, cwd=cache, check=True, capture_output=True, timeout=RESOLVE_TIMEOUT_S
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise Missing(f"Maven cannot resolve the jars of {what}: {error}") from error
    return partial

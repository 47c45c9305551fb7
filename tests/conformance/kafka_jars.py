"""Resolves the jars of a Kafka broker by Maven, once; they stay under `build`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from alone import alone

from cogwork.cli.servers.process import Missing, program

VERSION = "3.9.1"
CACHE = Path(__file__).parents[2] / "build" / "kafka" / VERSION
RESOLVE_TIMEOUT_S = 90
"""Less than a test has: behind a slow network the tests are skipped, until Maven has it all."""

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>cogwork</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
    <version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""


def jars() -> Path:
    """Returns the directory of the jars."""
    with alone(CACHE):
        done = CACHE / "jars"
        if not done.is_dir():
            _resolve().rename(done)
        return done


def _resolve() -> Path:
    program("java", "default-jre-headless")
    maven = program("mvn", "maven")
    (CACHE / "pom.xml").write_text(POM)
    partial = CACHE / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    try:
        subprocess.run(
            command, cwd=CACHE, check=True, capture_output=True, timeout=RESOLVE_TIMEOUT_S
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise Missing(f"Maven cannot resolve the jars of Kafka {VERSION}: {error}") from error
    return partial

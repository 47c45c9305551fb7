"""What Spark leaves on disk goes with its process, or with the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from quick_java import OPTIONS

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from cogwork.pipeline.spark.scratch import AGE_S_MIN, PREFIX, sweep

if TYPE_CHECKING:
    from pathlib import Path

SESSION = """
import sys
from cogwork.pipeline.spark.session import local_session
spark = local_session("litter", "local[1]", {"spark.driver.extraJavaOptions": sys.argv[1]})
spark.range(10).repartition(2).count()
print(flush=True)
sys.stdin.read()
"""

QUICK = f"{OPTIONS} -XX:-UsePerfData"


def started(place: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", SESSION, QUICK],
        env={**os.environ, "TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


def left(place: Path) -> list[str]:
    return [path.name for path in place.iterdir()]


@pytest.mark.soak
@pytest.mark.timeout(200)
def test_a_session_leaves_nothing_and_one_that_was_killed_is_cleared_away(tmp_path: Path) -> None:
    process = started(tmp_path)
    assert [name[: len(PREFIX)] for name in left(tmp_path)] == [PREFIX], "all is in one place"
    process.communicate(timeout=60)
    assert left(tmp_path) == []
    process = started(tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    (path,) = tmp_path.iterdir()
    sweep(tmp_path)
    assert path.exists(), "it is too young to tell"
    os.utime(path, (0, path.stat().st_mtime - 2 * AGE_S_MIN))
    sweep(tmp_path)
    assert left(tmp_path) == []


def test_what_a_living_process_has_is_left_alone(tmp_path: Path) -> None:
    program = (
        "from cogwork.pipeline.spark.scratch import scratch; print(scratch(), flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    (path,) = tmp_path.iterdir()
    os.utime(path, (0, 0))
    sweep(tmp_path)
    assert path.exists()
    process.communicate(b"\n", timeout=20)
    assert left(tmp_path) == []

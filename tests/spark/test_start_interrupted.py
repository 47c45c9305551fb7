"""Ctrl-C while Spark starts: nothing is said, and no JVM is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from cogwork.cli.exit_codes import ExitCode

PIPELINE = (sys.executable, "-m", "cogwork.cli.main", "pipeline", "run")
START_TIMEOUT_S = 60.0


def jvms_of(session: int) -> list[int]:
    """Lists the JVMs in a session of processes."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            name = entry.name.isdigit() and (entry / "comm").read_text().strip()
            if name == "java" and os.getsid(int(entry.name)) == session:
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the JVM is found in /proc")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_given_up_leaves_nothing_behind(tmp_path: Path, signum: int) -> None:
    job = tmp_path / "job.py"
    job.write_text("raise AssertionError\n")
    running = subprocess.Popen(
        [*PIPELINE, str(job)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with running:
        until_s = time.monotonic() + START_TIMEOUT_S
        while not jvms_of(running.pid):
            assert time.monotonic() < until_s
            assert running.poll() is None
            time.sleep(0.01)
        if signum == signal.SIGINT:
            os.killpg(running.pid, signum)  # as a terminal does
        else:
            running.send_signal(signum)
        out, err = running.communicate(timeout=START_TIMEOUT_S)
    assert jvms_of(running.pid) == []
    assert (running.returncode, out, err.strip()) == (ExitCode.INTERRUPTED, "", "")


def test_a_master_that_is_none_is_told_before_java_starts(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("")
    done = subprocess.run(
        [*PIPELINE, "--master", "nope", str(job)],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("cogwork: no master of Spark is named 'nope': local[*], ")
    assert done.stderr.count("\n") == 1

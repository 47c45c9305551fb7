"""Ctrl-C while Spark starts: nothing is said, and nothing that was started is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from cogwork.cli.exit_codes import ExitCode

PIPELINE = (sys.executable, "-m", "cogwork.cli.main", "pipeline", "run")
START_TIMEOUT_S = 60.0

LAUNCHER = "org.apache.spark.launcher.Main"
JVMS = ("-version", LAUNCHER, "org.apache.spark.deploy.SparkSubmit")
"""The JVMs of a start, one after the other: for its version, for what to start, and Spark's own."""


SLOW_LAUNCHER = """\
#!/usr/bin/env bash
launch() {
  sh -c 'echo $$ >"$0.part"; mv "$0.part" "$0"; sleep 600; :' "$PID_FILE" >&2
  echo done
}
read -r answer < <(launch)
"""
"""Stands for Spark's script, or for one called java: a child of its child does the work."""


INTERRUPTED_WITHIN = """
import os, signal
from cogwork.pipeline.spark.starting import given_up_together
from pyspark import java_gateway

told = os.dup(1)

def interrupt():
    os.write(told, b"%d\\n" % os.getpid())
    os.kill(os.getppid(), signal.SIGINT)

try:
    with given_up_together():
        java_gateway.Popen(["sleep", "600"], preexec_fn=interrupt, stdout=-3, stderr=-3)
except KeyboardInterrupt:
    print("given up")
"""
"""Ctrl-C comes while a process is being started: there is one, and Popen has not returned."""


def processes_of(session: int) -> dict[int, str]:
    """List what is in a session of processes, with the names."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                found[int(entry.name)] = (entry / "comm").read_text().strip()
        except OSError:
            continue  # it has just ended
    return found


def jvms_of(session: int) -> list[int]:
    return [pid for pid, name in processes_of(session).items() if name == "java"]


def command_of(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_text()
    except OSError:
        return ""  # it has just ended


def is_there(session: int, word: str) -> bool:
    """Return whether a session has a JVM whose command has a word; the launcher's has several."""
    commands = [command_of(pid) for pid in jvms_of(session)]
    return any(
        word in command and (LAUNCHER in command) == (word == LAUNCHER) for command in commands
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the JVM is found in /proc")
@pytest.mark.parametrize("jvm", JVMS)
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_given_up_leaves_nothing_behind(
    tmp_path: Path, signum: int, jvm: str
) -> None:
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
        while not is_there(running.pid, jvm):
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


@pytest.mark.skipif(sys.platform != "linux", reason="what is left is found in /proc")
@pytest.mark.parametrize(("home", "name"), [("JAVA_HOME", "java"), ("SPARK_HOME", "spark-submit")])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_what_a_script_has_started_is_not_left_either(
    tmp_path: Path, signum: int, home: str, name: str
) -> None:
    job, pid_file, script = tmp_path / "job.py", tmp_path / "pid", tmp_path / "bin" / name
    script.parent.mkdir()
    script.write_text(SLOW_LAUNCHER)
    script.chmod(0o700)
    job.write_text("raise AssertionError\n")
    running = subprocess.Popen(
        [*PIPELINE, str(job)],
        env={**os.environ, home: str(tmp_path), "PID_FILE": str(pid_file)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until_s = time.monotonic() + START_TIMEOUT_S
        while not pid_file.exists():
            assert time.monotonic() < until_s
            assert running.poll() is None
            time.sleep(0.01)
        assert os.getsid(int(pid_file.read_text())) == running.pid
        running.send_signal(signum)
        assert running.wait(START_TIMEOUT_S) == ExitCode.INTERRUPTED
        assert processes_of(running.pid) == {}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def test_what_is_just_being_started_is_not_left_either() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WITHIN],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    pid, said = done.stdout.split("\n", 1)
    try:
        assert (done.returncode, said, done.stderr) == (0, "given up\n", "")
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


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

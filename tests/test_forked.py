"""A forked process is what it would be if its command line had started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from forked import forked, forked_speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    Start = Callable[..., subprocess.Popen[bytes]]

STATUS = ("PPid", "SigBlk", "SigIgn", "SigCgt", "Seccomp", "NoNewPrivs", "Umask")


def started(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "cogwork.cli.main", *words], **options)


def facts_of(start: Start, folder: Path) -> dict[str, object]:
    """Return what the kernel knows of a container, what that says, and how it ends."""
    file = folder / f"{start.__name__}.log"
    with (
        file.open("w") as log,
        start("serve", "--listen", "127.0.0.1:0", stdout=subprocess.PIPE, stderr=log) as process,
    ):
        assert process.stdout is not None
        assert b" listens on amqp://" in process.stdout.readline()
        place = Path(f"/proc/{process.pid}")
        lines = (place / "status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines)
        found: dict[str, object] = {key: status[key] for key in STATUS}
        open_files = [os.readlink(each).partition(":[")[0] for each in (place / "fd").iterdir()]
        found["files"] = sorted(each for each in open_files if each != str(file))
        found["folder"] = (place / "cwd").resolve()
        process.send_signal(signal.SIGTERM)
        found["code"] = process.wait(15)
    found["said"] = [line.partition(" INFO ")[2] for line in file.read_text().splitlines()]
    return found


def test_a_forked_container_is_like_one_that_was_started(tmp_path: Path) -> None:
    found = facts_of(forked, tmp_path)
    assert found == facts_of(started, tmp_path)
    assert found["PPid"] == str(os.getpid())


@pytest.mark.parametrize(
    "words", [("receive", "--help"), ("nonsense",), ("receive", "amqp://127.0.0.1:1", "queue/a")]
)
def test_a_forked_command_has_its_environment_and_says_what_a_started_one_does(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(start: Start) -> tuple[int, bytes, bytes]:
        pipe = subprocess.PIPE
        with start(*words, stdout=pipe, stderr=pipe) as process:
            return (process.wait(30), *process.communicate())

    monkeypatch.setenv("COLUMNS", "50")
    assert ended(forked) == ended(started)


def test_a_command_with_an_environment_of_its_own_starts_anew(tmp_path: Path) -> None:
    """What the interpreter reads at its start counts, too."""
    (tmp_path / "sitecustomize.py").write_text("print('read at the start')")
    own = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with forked("--version", stdout=subprocess.PIPE, env=own) as process:
        assert process.communicate()[0].startswith(b"read at the start\n")


def test_a_forked_command_reads_what_is_written_to_it() -> None:
    with forked_speaking("passwd", "bob") as process:
        said, errors = process.communicate("secret\n", 30)
    assert process.returncode == 0, errors
    assert 'name = "bob"' in said


def test_a_forked_process_can_be_killed() -> None:
    process = forked("serve", "--listen", "127.0.0.1:0", stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    assert process.returncode == -signal.SIGKILL

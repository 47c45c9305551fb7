"""The archiver as a whole process, ended and killed, and with a container that is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from typing import IO, TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from archives import STREAM, append, archived, assert_no_orphan, assert_whole, create
from quick_java import OPTIONS
from system.served import COGWORK, READY_TIMEOUT_S, within

import cogwork.testing
from cogwork.bench.servers.process import free_ports
from cogwork.cli.main import run
from cogwork.pipeline.archive import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.pipeline.archive.notice import Notice

RECORDS = 400


@pytest.fixture
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        create(url)
        append(url, range(RECORDS))
        yield url


def started(url: str, to: Path, *more: str) -> subprocess.Popen[str]:
    command = [*COGWORK, "pipeline", "archive", url, STREAM, "--to", str(to), *more]
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": OPTIONS}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def wait_for(told: IO[str] | None, text: str) -> None:
    """Wait for a line of a process; one that ends without it fails."""
    assert told is not None
    lines: list[str] = []
    for line in told:
        lines.append(line)
        if text in line:
            return
    raise AssertionError(f"no {text!r} in {lines}")


@pytest.mark.soak
def test_kill_9_of_the_driver_with_its_spark(url: str, tmp_path: Path) -> None:
    process = started(url, tmp_path, "--master", "local[1]", "--every", "0.1")
    try:
        wait_for(process.stderr, f"{RECORDS} of {RECORDS} records archived")
        for number in range(5):
            append(url, range(number * 100, number * 100 + 100))
        wait_for(process.stderr, "records archived")
    finally:
        process.kill()
        process.communicate(timeout=15)
    outcome = archived(url, tmp_path)
    assert (outcome.start > RECORDS, outcome.mark) == (True, RECORDS + 500)
    assert_whole(url, tmp_path)
    assert_no_orphan(tmp_path)


def test_sigterm_ends_it_cleanly(url: str, tmp_path: Path) -> None:
    process = started(url, tmp_path, "--master", "none", "--every", "60", "--json")
    try:
        wait_for(process.stdout, f'"rows": {RECORDS}')
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=15) == ("", "")
    finally:
        process.kill()
    assert process.returncode == 0
    with Archive.open(str(tmp_path)) as archive:
        assert archive.mark(STREAM) == RECORDS
    assert_whole(url, tmp_path)


def test_kill_9_of_the_container(tmp_path: Path) -> None:
    """It comes back after a while, with the same records; the archiver has waited."""
    (port,) = free_ports(1)
    url, running = f"amqp://127.0.0.1:{port}", [serve(tmp_path, port)]

    def kill(notice: Notice) -> None:
        if notice.step == "planned" and notice.start == 100:
            running[0].kill()
            running[0].wait()
            running.append(serve(tmp_path, port, wait=False))

    try:
        create(url, engine="raft")
        append(url, range(RECORDS))
        outcome = archived(url, tmp_path / "archive", commit_rows=100, on_notice=kill)
        assert (outcome.rows, len(running)) == (RECORDS, 2)
        assert_whole(url, tmp_path / "archive")
        assert_no_orphan(tmp_path / "archive")
    finally:
        for process in running:
            process.kill()
            process.wait()


def serve(folder: Path, port: int, *, wait: bool = True) -> subprocess.Popen[bytes]:
    file = folder / "cogwork.toml"
    file.write_text(f'id = "a"\ndata_dir = "{folder / "data"}"\n[[listen]]\nport = {port}\n')
    process = subprocess.Popen(
        [*COGWORK, "serve", "--config", str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if wait:
        within(READY_TIMEOUT_S, lambda: listens(port), "the container listens")
    return process


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def test_the_command_says_what_is_wrong(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = ["--to", str(tmp_path), "--once", "--master", "none"]
    for arguments, code, line in (
        ([url, "nothing", *to], 6, "stream nothing: there is none of this name"),
        (["amqp://127.0.0.1:1", STREAM, *to], 4, "Connection refused"),
        ([url, STREAM, *to, "--every", "5"], 2, "exclude each other"),
        ([url, STREAM, *to, "--catalog-option", "x"], 2, "not of the form K=V"),
        ([url, STREAM, *to, "--to", "gopher://x"], 1, "no catalog that can be opened"),
    ):
        assert run(["pipeline", "archive", *arguments]) == code
        errors = capsys.readouterr().err
        assert line in errors
        assert errors.count("\n") == 1
    assert run(["pipeline", "archive", url, "stream/ord*", *to]) == 0
    told = capsys.readouterr()
    assert f"stream/{STREAM} archived up to {RECORDS}" in told.out

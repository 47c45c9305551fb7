"""Nobody reads a container's log, or its reader leaves: it serves on, and stops when told to."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cogwork.bench.servers.process import free_ports
from system.served import COGWORK, done

if TYPE_CHECKING:
    from collections.abc import Iterator

PIPE_BYTES = 4096
LINES = 200
TIMEOUT_S = 60

SHAPES = {
    "one": ["serve", "--listen", "127.0.0.1:{port}"],
    "workers": ["serve", "--listen", "127.0.0.1:{port}", "--workers", "2"],
    "up": ["up", "2", "--base-port", "{port}"],
}


@pytest.fixture(params=[True, False], ids=["stands still", "has left"])
def log(request: pytest.FixtureRequest) -> Iterator[tuple[int, bool]]:
    """The writing end of a small pipe, and whether its reader stays."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    if not request.param:
        os.close(reader)
    yield writer, request.param
    os.close(writer)
    if request.param:
        os.close(reader)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_container_goes_on_whatever_the_reader_of_its_log_does(
    log: tuple[int, bool], shape: str
) -> None:
    (port,) = free_ports(1)
    arguments = [each.format(port=port) for each in SHAPES[shape]]
    process = subprocess.Popen([*COGWORK, *arguments], stdout=subprocess.PIPE, stderr=log[0])
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        for _ in range(LINES):  # a line each
            with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                stranger.recv(100)
        done("send", f"amqp://127.0.0.1:{port}", "queue/a", "x", "--timeout", "30")
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_log_says_how_much_of_it_was_dropped() -> None:
    program = (
        "import logging, sys, time\n"
        "from cogwork.cli.process.log_lines import start_log\n"
        "start_log()\n"
        "for number in range(30_000):\n"
        "    logging.getLogger('cogwork').info('%d %s', number, 'x' * 500)\n"
        "print(flush=True)\n"
        "sys.stdin.readline()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    text = b""
    while b"lines of the log were dropped" not in text:
        text += os.read(process.stderr.fileno(), 1 << 20)
    written = text.count(b"x" * 500)
    count = int(text.partition(b"cogwork: ")[2].partition(b" lines")[0].replace(b",", b""))
    assert written + count == 30_000
    process.communicate(b"\n")
    assert process.returncode == 0

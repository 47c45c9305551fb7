"""A container in a process of its own, and what `cogwork status` says of it."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from forked import forked, forked_speaking

from cogwork.bench.servers.process import free_ports
from cogwork.bench.usage import ProcessUsage
from cogwork.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COGWORK = [sys.executable, "-m", "cogwork.cli.main"]

OPEN = """
[anonymous]
permissions = [
  { address = "#", rights = ["send", "receive", "manage"], vhost = "*" },
  { address = "$management", rights = ["send", "manage"], vhost = "*" },
]
"""
"""Lets anonymous clients do everything although there are users."""

READY_TIMEOUT_S = 60.0
SETTLE_TIMEOUT_S = 40.0
"""Within it, whatever a dead client held has to be gone."""


@dataclass(frozen=True)
class Holdings:
    """What a container holds for its clients, the status command's own connection among them.

    Attributes:
        connections, sessions, links: Counts them.
        senders, receivers: What is attached to addresses.
        replies: Dynamic addresses.
        unsettled: Deliveries that were sent and that nobody has settled yet.
        unsettled_in: Deliveries that came and have no outcome yet.
        unsent_bytes: Bytes that wait for a slow connection.
        backlog_bytes: Bytes of deliveries that wait for the credit of a slow link.
        partial_bytes: Bytes of deliveries whose last frame has not come.
        held_bytes: All that is kept of messages, items of queues among them.
    """

    connections: int
    sessions: int
    links: int
    senders: int
    receivers: int
    replies: int
    unsettled: int
    unsettled_in: int
    unsent_bytes: int
    backlog_bytes: int
    partial_bytes: int
    held_bytes: int


@dataclass(frozen=True)
class Served:
    """A running container.

    Attributes:
        url: Where it listens.
        process: Its process.
    """

    url: str
    process: subprocess.Popen[bytes]

    def status(self) -> dict[str, Any]:
        """Return what `cogwork status --json` prints."""
        found: dict[str, Any] = json.loads(self.run("status", self.url, "--json"))
        return found

    def holdings(self) -> Holdings:
        """Return the figures that must not grow with the number of clients that died."""
        status = self.status()
        addresses = status["addresses"]
        return Holdings(
            sessions=len(status["sessions"]),
            senders=sum(row["senders"] for row in addresses),
            receivers=sum(row["receivers"] for row in addresses),
            replies=sum(row["address"].startswith("_reply/") for row in addresses),
            **status["totals"],
        )

    def endpoint(self, scheme: str) -> str:
        """Return the host and port of the listener with this transport."""
        urls: list[str] = self.status()["container"]["endpoints"]
        return next(urlsplit(url).netloc for url in urls if url.startswith(f"{scheme}://"))

    def address(self, name: str) -> dict[str, Any]:
        """Return the figures of one address."""
        rows = self.status()["addresses"]
        return next((row for row in rows if row["address"] == name), {"depth": 0, "unsettled": 0})

    def run(self, *arguments: str) -> str:
        """Run a command of the command line; return its standard output."""
        return done(*arguments).stdout

    def resident_kib(self) -> int:
        """Return the memory that the process has in use."""
        return ProcessUsage(self.process.pid).rss_bytes() // 1024


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line in this process: another one takes long to start."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as output,
        contextlib.redirect_stderr(io.StringIO()) as errors,
    ):
        code = run(words)
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())


def done(*words: str) -> subprocess.CompletedProcess[str]:
    """The same for a command that has to end well."""
    found = ran(*words)
    assert found.returncode == 0, f"cogwork {words}: {found.returncode}: {found.stderr}"
    return found


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command beside the test."""
    with forked_speaking(*arguments) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(*words: str, timeout_s: float = 30.0) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own; return how it ends."""
    with started(*words) as process:
        output, errors = process.communicate(timeout=timeout_s)
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


@contextlib.contextmanager
def served(folder: Path, configuration: str = "", *, head: str = "") -> Iterator[Served]:
    """Run a container for the length of a `with` block.

    Args:
        folder: Takes its configuration and log.
        configuration: What `cogwork.toml` says besides the listener.
        head: What it says before any table.
    """
    (port,) = free_ports(1)
    file = folder / "cogwork.toml"
    file.write_text(f"{head}[[listen]]\nport = {port}\n\n{configuration}")
    url = f"amqp://127.0.0.1:{port}"
    with serving(folder / "cogwork.log", url, "--config", str(file)) as container:
        yield container


@contextlib.contextmanager
def serving(log: Path, url: str, *options: str) -> Iterator[Served]:
    """Run a container with options of `cogwork serve` for the length of a `with` block.

    Args:
        log: Takes what it says.
        url: Where it listens by these options.
        options: What they are.
    """
    with log.open("wb") as output:
        process = forked("serve", *options, stdout=output, stderr=output)
    try:
        within(READY_TIMEOUT_S, lambda: listens(process, log), "the container listens")
        yield Served(url, process)
        assert process.poll() is None, f"the container died: {log.read_text()[-2000:]}"
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
        process.wait()


def listens(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Return whether it has said so, which it does once all listeners are open."""
    said = log.read_text()
    assert process.poll() is None, f"the container ended: {said[-2000:]}"
    return " listens on " in said


def within(timeout_s: float, condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition()` is true. Raises `AssertionError` after the time-out."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.05)

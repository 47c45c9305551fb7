"""A server's process, with ports and a directory of its own; it can be killed, and stopped."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from cogwork.io.interruption import interrupted_later

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ("Missing", "Server", "free_ports", "program")

START_TIMEOUT_S = 60.0
PAUSE_S = 0.1

PORTS = range(10_000, 32_768)
"""Linux lends the ones above (ip_local_port_range)."""

PORTS_OF_A_PROCESS = 331


class Missing(Exception):
    """A server that cannot be had here; the text says why."""


def program(name: str, package: str) -> str:
    """Find a program; Debian keeps some where only root's PATH leads.

    Raises:
        Missing: It is not installed.
    """
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None:
        raise Missing(f"{name} is not installed (Debian package {package})")
    return found


def free_ports(count: int) -> list[int]:
    """Return ports at which nobody listens, each another one.

    They lie below those that the kernel lends to connections, one of which would else have them
    before a server does. Processes that look at the same time begin at different places.
    """
    return list(itertools.islice(filter(_is_free, _candidates), count))


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def _every_port() -> Iterator[int]:
    first = os.getpid() * PORTS_OF_A_PROCESS
    for step in itertools.count(first):
        yield PORTS[step % len(PORTS)]


_candidates = _every_port()


class Server(ABC):
    """A server process.

    Args:
        directory: Where it keeps what it keeps.
    """

    port_count: ClassVar[int] = 1

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.port, *self.more_ports = free_ports(self.port_count)
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """Return what starts it."""

    def is_ready(self) -> bool:
        """Return whether it answers; by its port, where nothing more can be asked."""
        socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        return True

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            Missing: It is not installed.
            RuntimeError: It does not come up; the text has the end of its log.
        """
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it.

        Raises:
            Missing: It is not installed.
        """
        with (self.directory / "log").open("ab") as log, interrupted_later():
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
            )

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            RuntimeError: It does not; the text has the end of its log.
        """
        limit_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < limit_s:
            if self._process is None or self._process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                if self.is_ready():
                    return
            time.sleep(PAUSE_S)
        tail = (self.directory / "log").read_bytes()[-2000:].decode(errors="replace")
        self.kill()
        raise RuntimeError(f"{self.command()[0]} does not start: {tail}")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def name(self) -> str:
        """What its cluster calls it."""
        return f"127.0.0.1:{self.port}"

    @property
    @abstractmethod
    def options(self) -> dict[str, object]:
        """The engine's options that lead to it."""

    def freeze(self) -> None:
        """Have it stand still, with all connections open; it does when this returns."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)
            # A thread that waits for a processor may run on and answer until it gets the signal.
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Have it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def answers(self, request: bytes, expected: bytes, port: int | None = None) -> bool:
        """Send octets, and look whether others come back."""
        place = ("127.0.0.1", self.port if port is None else port)
        with socket.create_connection(place, timeout=1) as connection:
            connection.sendall(request)
            found = b""
            while expected not in found:
                data = connection.recv(4096)
                if not data:
                    return False
                found += data
            return True

"""A server under test: its own process, port and directory; it can be killed and stopped."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

START_TIMEOUT_S = 60.0


class Missing(Exception):
    """A server that cannot be had here; the text says why."""


def program(name: str, package: str) -> str:
    """Finds a program; Debian keeps some where only root's PATH leads."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None:
        raise Missing(f"{name} is not installed (Debian package {package})")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Server(ABC):
    """A server process.

    Args:
        directory: Where it keeps what it keeps.
    """

    ports = 1

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.port, *self.more_ports = [free_port() for _ in range(self.ports)]
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """Returns what starts it."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Tells whether it answers."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def start(self) -> None:
        log = (self.directory / "log").open("ab")
        self._process = subprocess.Popen(  # a fixed command of the test's own
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=self.environment(),
            cwd=self.directory,
        )
        log.close()
        limit_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < limit_s:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                if self.is_ready():
                    return
            time.sleep(0.1)
        tail = (self.directory / "log").read_bytes()[-2000:].decode(errors="replace")
        self.kill()
        raise RuntimeError(f"{self.command()[0]} does not start: {tail}")

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Has it stand still, with all connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def answers(self, request: bytes, expected: bytes) -> bool:
        """Sends octets, and looks whether others come back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(request)
            return expected in connection.recv(4096)

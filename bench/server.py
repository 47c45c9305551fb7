"""A server process to be measured, started fresh for each case."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import trustme

from cogwork.bench.measure import Broker
from cogwork.bench.servers.process import free_ports
from cogwork.bench.usage import ProcessUsage

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ("DEFAULT_COMMAND", "Certificates", "Server", "ServerError")

DEFAULT_COMMAND: Final = (
    f"{Path(sys.executable).parent}/cogwork serve --id bench --config {{config}}"
)

_STOP_S: Final = 10.0


class ServerError(Exception):
    """The server did not start; the text is one line."""


class Certificates:
    """An authority and a certificate for 127.0.0.1, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        """Make them."""
        self.authority = directory / "authority.pem"
        self.server = directory / "server.pem"
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.authority))
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_and_cert_chain_pem.write_to_path(str(self.server))


class Server:
    """A started server; leaving the context stops it.

    Attributes:
        head: What its configuration says before all tables; {root} is a directory of its own.
        tables: What it says besides the listeners.
        start_timeout_s: How long it may take until it listens.
    """

    head = ""
    tables = ""
    start_timeout_s = 20.0

    def __init__(self, command: str) -> None:
        """Prepare it.

        Args:
            command: What starts it; {config} is a configuration file with two listeners, {port}
                and {tls_port} are their ports, for servers that want them in another way.
        """
        self._command = command
        self._directory = tempfile.TemporaryDirectory()
        self._root = Path(self._directory.name)
        self.certificates = Certificates(self._root)
        self.port, self.tls_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Start it, once more where it has ended."""
        config = self._root / "cogwork.toml"
        config.write_text(
            f"{self.head.format(root=self._root)}[[listen]]\nport = {self.port}\n\n"
            f'[[listen]]\nport = {self.tls_port}\ntransport = "amqps"\n\n'
            f'[listen.tls]\ncertificate = "{self.certificates.server.name}"\n{self.tables}'
        )
        words = {"config": config, "port": self.port, "tls_port": self.tls_port}
        with (self._root / "log").open("wb") as log:
            self._process = subprocess.Popen(
                shlex.split(self._command.format(**words)),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_it_listens()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()
        self._directory.cleanup()

    @property
    def usage(self) -> ProcessUsage:
        """Its counters."""
        assert self._process is not None
        return ProcessUsage(self._process.pid)

    @property
    def route(self) -> Broker:
        """The way through it."""
        return Broker(f"amqp://127.0.0.1:{self.port}", self.usage)

    @property
    def tls_route(self) -> Broker:
        """The way through it under TLS."""
        return Broker(f"amqps://127.0.0.1:{self.tls_port}", self.usage)

    def _wait_until_it_listens(self) -> None:
        assert self._process is not None
        deadline_s = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline_s and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        said = (self._root / "log").read_text(errors="replace").strip().splitlines()
        self._stop()
        self._directory.cleanup()
        raise ServerError(f"the server did not start: {said[-1] if said else 'it says nothing'}")

    def _stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

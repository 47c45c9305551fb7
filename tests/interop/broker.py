"""The broker under test, as a process of its own with every kind of listener."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import trustme

from cogwork.bench.servers.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = Any

READY_TIMEOUT_S = 60.0
OTHER_BROKER = "COGWORK_INTEROP_BROKER"
"""Names a command that starts another broker in its place: it tells a peer's fault from ours.

It gets one argument, the settings as a JSON document.
"""


@dataclass(frozen=True)
class Settings:
    """Where the broker listens and whom it knows; paths are text, so that it is a JSON document.

    Args:
        folder: Where its files are.
        socket: The path of its Unix-domain socket.
        amqp_port, amqps_port, ws_port, wss_port: Ports on 127.0.0.1.
        ca: The authority that signed the broker's certificate and that of its client.
        certificate, key: The broker's.
        client_certificate, client_key: The client's; its common name is `user`.
        user, password: A user who may do everything.
    """

    folder: str
    socket: str
    amqp_port: int
    amqps_port: int
    ws_port: int
    wss_port: int
    ca: str
    certificate: str
    key: str
    client_certificate: str
    client_key: str
    user: str = "interop"
    password: str = "three spare teeth"

    def anonymous(self) -> Json:
        """Return the `connection` of a command over plain TCP."""
        return {"url": f"amqp://127.0.0.1:{self.amqp_port}"}

    def plain(self, password: str | None = None) -> Json:
        """Return a connection with user and password."""
        secret = self.password if password is None else password
        return {**self.anonymous(), "sasl": "PLAIN", "user": self.user, "password": secret}

    def tls(self) -> Json:
        """Return a connection over TLS, with user and password."""
        return {**self.plain(), "url": f"amqps://localhost:{self.amqps_port}", "ca": self.ca}

    def external(self) -> Json:
        """Return a connection over TLS, with a client certificate."""
        credentials = {"certificate": self.client_certificate, "key": self.client_key}
        return {
            "url": f"amqps://localhost:{self.amqps_port}",
            "ca": self.ca,
            "sasl": "EXTERNAL",
            **credentials,
        }

    def websocket(self) -> Json:
        """Return a connection over WebSocket, with user and password."""
        return {**self.plain(), "url": f"ws://127.0.0.1:{self.ws_port}/"}

    def secure_websocket(self) -> Json:
        """Return a connection over WebSocket over TLS, with user and password."""
        return {**self.plain(), "url": f"wss://localhost:{self.wss_port}/", "ca": self.ca}

    def unix(self) -> Json:
        """Return a connection by the Unix-domain socket, with user and password."""
        return {**self.plain(), "url": f"unix://{self.socket}"}

    @property
    def ports(self) -> tuple[int, ...]:
        """All of them."""
        return self.amqp_port, self.amqps_port, self.ws_port, self.wss_port


def prepare(folder: Path) -> Settings:
    """Write certificates and configuration, and chooses ports."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    server = authority.issue_cert("localhost", "127.0.0.1")
    client = authority.issue_cert("interop@localhost", common_name="interop")
    for name, issued in (("server", server), ("client", client)):
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        for number, part in enumerate(issued.cert_chain_pems):
            part.write_to_path(folder / f"{name}.pem", append=number > 0)
    files = [
        str(folder / name)
        for name in ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")
    ]
    amqp_port, amqps_port, ws_port, wss_port = free_ports(4)
    path = str(folder / "broker.sock")
    return Settings(str(folder), path, amqp_port, amqps_port, ws_port, wss_port, *files)


@contextlib.contextmanager
def running(settings: Settings) -> Iterator[None]:
    """Run the broker for the length of a `with` block; wait until it listens everywhere."""
    with (Path(settings.folder) / "broker.log").open("wb") as log:
        process = subprocess.Popen(command_line(settings), stdout=log, stderr=subprocess.STDOUT)
    try:
        for port in settings.ports:
            _await_port(port, process, Path(settings.folder) / "broker.log")
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def command_line(settings: Settings) -> list[str]:
    """Return the command that starts the broker."""
    other = os.environ.get(OTHER_BROKER)
    if other:
        return [*shlex.split(other), json.dumps(asdict(settings))]
    file = Path(settings.folder) / "cogwork.toml"
    file.write_text(configuration(settings))
    return [
        sys.executable,
        "-m",
        "cogwork.cli.main",
        "serve",
        "--id",
        "interop",
        "--config",
        str(file),
    ]


def configuration(settings: Settings) -> str:
    """Return the container's configuration: five listeners and one user."""
    from cogwork.config.password_hash import hash_password  # noqa: PLC0415  # another broker runs without

    return f"""\
[[listen]]
port = {settings.amqp_port}

[[listen]]
path = "{settings.socket}"

[[listen]]
port = {settings.amqps_port}
transport = "amqps"
[listen.tls]
certificate = "{settings.certificate}"
key = "{settings.key}"
client_ca = "{settings.ca}"

[[listen]]
port = {settings.ws_port}
transport = "ws"

[[listen]]
port = {settings.wss_port}
transport = "wss"
[listen.tls]
certificate = "{settings.certificate}"
key = "{settings.key}"

[[user]]
name = "{settings.user}"
password_hash = "{hash_password(settings.password)}"
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]

[anonymous]
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]
"""


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            raise AssertionError(
                f"the broker ended with {process.returncode}: {log.read_text()[-2000:]}"
            )
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the broker does not listen on port {port}: {log.read_text()[-2000:]}")

"""Readers listen wherever their container does, and let in whom it lets in."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import trustme
from issuers import AUDIENCE, ISSUER, Issuer

from cogwork import sync
from cogwork.bench.servers.process import free_ports
from cogwork.config.password_hash import hash_password
from cogwork.io.tls import client_context
from cogwork.pipeline.arrow import ArrowClient, ArrowError

from .arrow_readers import WithoutReaders, readers_only
from .processes import children_of
from .served import READY_TIMEOUT_S, Served, served, within

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cogwork.client.connection.tokens import Token

LISTENERS = (
    """
[[listen]]
port = {amqps}
transport = "amqps"
tls = {{ certificate = "{server}" }}
""",
    """
[[listen]]
port = {ws}
transport = "ws"
""",
)

CONFIGURATION = """
[arrow]
readers = 1

[[user]]
name = "jo"
password_hash = "{password_hash}"
permissions = [{{ address = "stream/#", rights = ["send", "receive"], vhost = "shop" }}]

[[group]]
name = "bearers"
permissions = [{{ address = "stream/#", rights = ["receive"], vhost = "shop" }}]

[oauth]
issuer = "{issuer}"
audience = ["{audience}"]
jwks = "{jwks}"
default_groups = ["bearers"]

[[vhost]]
name = "shop"
[[vhost.stream]]
address = "stream/orders"
"""


class Stage:
    """A container with a reader.

    Attributes:
        tls: Trusts its certificate.
    """

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
            folder / "server.pem"
        )
        self.ports = dict(zip(("amqps", "ws"), free_ports(2), strict=True))
        self.tls: ssl.SSLContext = client_context(folder / "ca.pem")
        self._folder = folder
        self._password_hash = hash_password("word")
        self.issuer = Issuer()
        (folder / "jwks.json").write_bytes(self.issuer.jwks())

    def text(self, listeners: Iterable[str] = LISTENERS) -> str:
        """Return what `cogwork.toml` says besides the listener of its own."""
        return ("".join(listeners) + CONFIGURATION).format(
            **self.ports,
            server=self._folder / "server.pem",
            password_hash=self._password_hash,
            issuer=ISSUER,
            audience=AUDIENCE,
            jwks=self._folder / "jwks.json",
        )

    def url(self, scheme: str, login: str = "jo:word@") -> str:
        """Return where it listens."""
        return f"{scheme}://{login}127.0.0.1:{self.ports[scheme]}/shop"

    def listens(self) -> bool:
        """Return whether it listens at all of its ports."""
        for port in self.ports.values():
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) != 0:
                    return False
        return True


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("transports")) as (made, _):
        yield made


@contextmanager
def staged(folder: Path) -> Iterator[tuple[Stage, Served]]:
    """Run a container with a reader, and a hundred records, for the length of a `with` block."""
    made = Stage(folder)
    with served(folder, made.text()) as running:
        within(READY_TIMEOUT_S, made.listens, "it listens at every port")
        with sync.connect(made.url("ws")) as mesh:
            mesh.stream("orders").append(b"%d" % number for number in range(100))
        yield made, running


@pytest.mark.parametrize("scheme", ["amqps", "ws"])
def test_a_range_is_read_over_every_transport(stage: Stage, scheme: str) -> None:
    reads_by_readers(stage, scheme)


def test_a_token_reads_a_range(stage: Stage) -> None:
    reads_by_readers(stage, "amqps", "", token=stage.issuer.token)


def test_readers_know_listeners_that_changed_places(tmp_path: Path) -> None:
    with staged(tmp_path) as (stage, running):
        reads_by_readers(stage, "ws")
        file = tmp_path / "cogwork.toml"
        moved = stage.text(reversed(LISTENERS))
        file.write_text(file.read_text().replace(stage.text(), moved))
        assert moved in file.read_text()
        running.process.send_signal(signal.SIGHUP)
        (reader,) = children_of(running.process.pid)
        os.kill(reader, signal.SIGKILL)
        for scheme in ("ws", "amqps"):
            reads_by_readers(stage, scheme)


def reads_by_readers(
    stage: Stage, scheme: str, login: str = "jo:word@", token: Token | None = None
) -> None:
    """Check that a range comes from a reader, and from nowhere else, once there is one."""

    def is_read() -> bool:
        url = stage.url(scheme, login)
        with readers_only(), ArrowClient(url, token=token, tls=stage.tls) as client:
            try:
                (batch,) = client.read("orders", 0, 100, ["body"])
            except WithoutReaders:
                return False
        bodies: list[bytes] = batch.column("body").to_pylist()
        return bodies == [b"%d" % number for number in range(100)]

    within(READY_TIMEOUT_S, is_read, f"a reader gives the range by {scheme}")


def test_a_wrong_login_is_told_at_once(stage: Stage) -> None:
    with (
        ArrowClient(stage.url("ws", "jo:wrong@")) as client,
        pytest.raises(ArrowError, match="refused"),
    ):
        client.bounds("orders")

"""Readers listen wherever their container does, and let in whom it lets in."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
import trustme

from cogwork import sync
from cogwork.arrow import ArrowClient, ArrowError
from cogwork.arrow import session as sessions
from cogwork.cli.servers.process import free_ports
from cogwork.container.users import hash_password
from cogwork.io.tls import client_context

from .served import READY_TIMEOUT_S, served, within

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURATION = """
[[listen]]
port = {amqps}
transport = "amqps"
tls = {{ certificate = "{server}" }}

[[listen]]
port = {ws}
transport = "ws"

[arrow]
readers = 1

[[user]]
name = "jo"
password_hash = "{password_hash}"
permissions = [{{ address = "stream/#", rights = ["send", "receive"], vhost = "shop" }}]

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
        self.text = CONFIGURATION.format(
            **self.ports, server=folder / "server.pem", password_hash=hash_password("word")
        )

    def url(self, scheme: str, login: str = "jo:word@") -> str:
        """Returns where it listens."""
        return f"{scheme}://{login}127.0.0.1:{self.ports[scheme]}/shop"

    def listens(self) -> bool:
        """Says whether it listens at all of its ports."""
        for port in self.ports.values():
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) != 0:
                    return False
        return True


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("transports")
    made = Stage(folder)
    with served(folder, made.text):
        within(READY_TIMEOUT_S, made.listens, "it listens at every port")
        with sync.connect(made.url("ws")) as mesh:
            mesh.stream("orders").append(b"%d" % number for number in range(100))
        yield made


@pytest.mark.parametrize("scheme", ["amqps", "ws"])
def test_a_range_is_read_over_every_transport(
    stage: Stage, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offers_readers() -> bool:
        with ArrowClient(stage.url(scheme), tls=stage.tls) as client:
            return len(list(client.read("orders", 0, 100, ["body"]))) == 1 and bool(asked)

    asked: list[object] = []
    find = sessions._reader_of
    monkeypatch.setattr(sessions, "_reader_of", lambda mesh: _noted(asked, find(mesh)))
    within(READY_TIMEOUT_S, offers_readers, "there are readers")

    def none(*_: object) -> None:
        raise AssertionError("this was to be read from a reader")

    monkeypatch.setattr(sessions.Session, "_by_records", none)
    with ArrowClient(stage.url(scheme), tls=stage.tls) as client:
        (batch,) = client.read("orders", 0, 100, ["body"])
        assert batch.column("body").to_pylist() == [b"%d" % number for number in range(100)]


def _noted(asked: list[object], found: object) -> object:
    if found is not None:
        asked.append(found)
    return found


def test_a_wrong_login_is_told_at_once(stage: Stage) -> None:
    with (
        ArrowClient(stage.url("ws", "jo:wrong@")) as client,
        pytest.raises(ArrowError, match="refused"),
    ):
        client.bounds("orders")

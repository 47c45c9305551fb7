"""TLS with rules: a foreign client by TLS 1.3, revoked certificates, clients without TLS."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NamedTuple

import pytest
from certificates import Authority
from proton import Message, SSLDomain
from proton.utils import BlockingConnection

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode

from .served import done, ran, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TIMEOUT_S = 30.0
SECRET = "open-sesame"  # of a key that is made here

CONFIGURATION = """
[[listen]]
port = {port}
transport = "amqps"
require_tls = true

[listen.tls]
certificate = "server.sealed.pem"
key_password = "${{KEY_PASSWORD}}"
client_ca = "ca.pem"
crl_file = "crl.pem"
minimum_version = "1.3"
identity_from = "san-dns"

[listen.tls.users]
"*.billing.example" = "billing"

[[user]]
name = "billing"
permissions = [{{ address = "queue/#", rights = ["receive", "send"] }}]

[anonymous]
permissions = [{{ address = "$management", rights = ["send", "manage"] }}]
"""


class Place(NamedTuple):
    """A container, its authority, and where it listens."""

    authority: Authority
    folder: Path
    port: int
    status_url: str


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("KEY_PASSWORD", SECRET)
    authority = Authority(tmp_path)
    authority.encrypt(authority.issue("server", "localhost"), SECRET)
    authority.revoke()
    (port,) = free_ports(1)
    with served(tmp_path, CONFIGURATION.format(port=port)) as container:
        yield Place(authority, tmp_path, port, container.url)


def connected(place: Place, certificate: Path) -> BlockingConnection:
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(str(place.authority.file))
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    domain.set_credentials(str(certificate), str(certificate), None)
    return BlockingConnection(
        f"amqps://localhost:{place.port}",
        timeout=TIMEOUT_S,
        ssl_domain=domain,
        allowed_mechs="EXTERNAL",
        reconnect=False,
    )


def log_of(place: Place) -> str:
    return (place.folder / "cogwork.log").read_text()


def test_a_foreign_client_is_the_user_of_its_certificate(place: Place) -> None:
    web = place.authority.issue("web", "web.billing.example")
    connection = connected(place, web)
    try:
        connection.create_sender("queue/invoices").send(Message("due"))
        receiver = connection.create_receiver("queue/invoices")
        assert receiver.receive(TIMEOUT_S).body == "due"
        receiver.accept()
        assert "billing" in done("status", place.status_url, "--json").stdout
    finally:
        connection.close()
    other = place.authority.issue("other", "web.deep.billing.example")
    with pytest.raises(Exception, match=r"."):  # which one is proton's affair
        connected(place, other)
    assert SECRET not in log_of(place)


def test_a_certificate_is_refused_once_it_is_revoked(place: Place) -> None:
    web = place.authority.issue("web", "web.billing.example")
    connected(place, web).close()
    place.authority.revoke(web)
    within(TIMEOUT_S, lambda: "read the revocation list again" in log_of(place), "it is read")
    with pytest.raises(Exception, match=r"."):  # which one is proton's affair
        connected(place, web)
    within(TIMEOUT_S, lambda: "certificate revoked" in log_of(place), "the log says why")
    connected(place, place.authority.issue("new", "new.billing.example")).close()


def test_a_client_without_tls_is_told_so_and_refused(place: Place) -> None:
    with socket.create_connection(("127.0.0.1", place.port), TIMEOUT_S) as plain:
        plain.sendall(b"AMQP\x03\x01\x00\x00")
        said = b""
        while chunk := plain.recv(64):
            said += chunk
    assert said == b"AMQP\x02\x01\x00\x00"
    within(TIMEOUT_S, lambda: "the peer speaks plain AMQP" in log_of(place), "the log says why")
    found = ran("queue", "list", f"amqp://billing:x@127.0.0.1:{place.port}")
    assert found.returncode == ExitCode.CONNECTION
    assert "TLS" in found.stderr

"""Clients behind a load balancer, and those that no list holds."""

from __future__ import annotations

import signal
import socket
import ssl
from typing import TYPE_CHECKING, NamedTuple

import pytest
from certificates import Authority
from proxy_headers import LOCAL, TLV, of_ipv4, of_ipv6

from cogwork.bench.servers.process import free_ports

from .served import served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .served import Served

TIMEOUT_S = 30.0
SASL = b"AMQP\x03\x01\x00\x00"

CONFIGURATION = """
[[listen]]
port = {plain}
proxy_protocol = true
proxy_from = ["127.0.0.0/8"]
allow = ["203.0.113.0/24", "2001:db8::/32"]
deny = ["203.0.113.66"]

[[listen]]
port = {tls}
transport = "amqps"
tls = {{ certificate = "server.pem" }}
proxy_protocol = true
proxy_from = ["127.0.0.0/8"]

[[listen]]
port = {elsewhere}
proxy_protocol = true
proxy_from = ["10.0.0.0/8"]

[[listen]]
port = {denied}
deny = ["127.0.0.0/8"]

[[user]]
name = "billing"
password_file = "pw"
permissions = [{{ address = "#", rights = ["send"] }}]

[anonymous]
permissions = [{{ address = "$management", rights = ["send", "manage"] }}]
"""


class Place(NamedTuple):
    """A container, its authority, its folder, and the ports of its listeners."""

    container: Served
    authority: Authority
    folder: Path
    ports: dict[str, int]

    def log(self) -> str:
        return (self.folder / "cogwork.log").read_text()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("proxied")
    authority = Authority(folder)
    authority.issue("server", "localhost")
    (folder / "pw").write_text("secret\n")
    (folder / "pw").chmod(0o600)
    ports = dict(zip(("plain", "tls", "elsewhere", "denied"), free_ports(4), strict=True))
    head = ""
    with served(folder, CONFIGURATION.format(**ports), head=head) as container:
        yield Place(container, authority, folder, ports)


def connected(place: Place, listener: str, first: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", place.ports[listener]), TIMEOUT_S)
    sock.sendall(first)
    return sock


def received(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := sock.recv(size - len(data))):
        data += chunk
    return data


def is_answered(sock: socket.socket) -> bool:
    """Return whether the container answers SASL's header: it does so to whom it lets in."""
    try:
        sock.sendall(SASL)
        return received(sock, len(SASL)) == SASL
    except OSError:
        return False


def logged(place: Place, text: str) -> None:
    within(TIMEOUT_S, lambda: text in place.log(), f"the log says {text}")


@pytest.mark.parametrize(
    ("first", "peer"),
    [
        (of_ipv4("203.0.113.7", 4711, TLV), "203.0.113.7:4711"),
        (of_ipv6("2001:db8::7", 4712), "2001:db8::7:4712"),
        (LOCAL, "127.0.0.1:"),
    ],
)
def test_the_client_is_where_the_header_says(place: Place, first: bytes, peer: str) -> None:
    with connected(place, "plain", first) as sock:
        assert is_answered(sock)
        peers = [row["peer"] for row in place.container.status()["connections"]]
        assert any(each.startswith(peer) for each in peers)


def test_it_comes_before_tls(place: Place) -> None:
    context = ssl.create_default_context(cafile=str(place.authority.file))
    sock = connected(place, "tls", of_ipv4("198.51.100.1", 99))
    with context.wrap_socket(sock, server_hostname="localhost") as encrypted:
        assert is_answered(encrypted)
        rows = place.container.status()["connections"]
        assert "198.51.100.1:99" in [row["peer"] for row in rows]
    logged(place, "from 198.51.100.1:99 by the proxy 127.0.0.1:")


@pytest.mark.parametrize(
    ("listener", "first", "why"),
    [
        ("plain", b"", "found no PROXY header: it begins with b'AMQP"),
        ("plain", b"PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n", "found version 1 of the PROXY"),
        ("plain", of_ipv4("203.0.113.66", 1), "203.0.113.66:1 to 127.0.0.1:{plain}: deny lists"),
        ("plain", of_ipv4("198.51.100.7", 1), "198.51.100.7:1 to 127.0.0.1:{plain}: allow does"),
        ("elsewhere", of_ipv4("203.0.113.7", 1), "proxy_from does not list its address"),
        ("denied", b"", "127.0.0.1:{denied}: deny lists its address"),
    ],
)
def test_others_are_refused_with_a_line(
    place: Place, listener: str, first: bytes, why: str
) -> None:
    def attempt() -> bool:
        with connected(place, listener, first) as sock:
            assert not is_answered(sock)
        return why.format(**place.ports) in place.log()  # a line a second

    within(TIMEOUT_S, attempt, f"the log says {why}")


def test_who_comes_by_a_balancer_of_this_machine_is_not_of_this_machine(place: Place) -> None:
    """Or everybody would be anonymous behind one that listens to the world."""
    with connected(place, "plain", of_ipv4("203.0.113.7", 1)) as sock:
        assert is_answered(sock)
        size = int.from_bytes(received(sock, 4), "big")
        mechanisms = received(sock, size - 4)
    assert b"PLAIN" in mechanisms
    assert b"ANONYMOUS" not in mechanisms


def test_lists_hold_anew_after_a_reload(place: Place) -> None:
    file = place.folder / "cogwork.toml"
    text = file.read_text()
    with connected(place, "denied") as sock:
        assert not is_answered(sock)
    file.write_text(text.replace('deny = ["127.0.0.0/8"]', 'deny = ["192.0.2.0/24"]'))
    place.container.process.send_signal(signal.SIGHUP)
    logged(place, "configuration reloaded")
    with connected(place, "denied") as sock:
        assert is_answered(sock)
    file.write_text(
        text.replace('"192.0.2.0/24"', '"nonsense"').replace("10.0.0.0/8", "10.0.0.1/8")
    )
    place.container.process.send_signal(signal.SIGHUP)
    logged(place, 'proxy_from[0]: found "10.0.0.1/8"')
    with connected(place, "plain", of_ipv4("203.0.113.7", 1)) as sock:
        assert is_answered(sock)

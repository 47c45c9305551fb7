"""The PROXY protocol: whose connection a load balancer passes on."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proxy_headers import LOCAL, SIGNATURE, TLV, UNKNOWN, header, of_ipv4, of_ipv6, of_path

from cogwork.io.networks import Networks, PeerName
from cogwork.io.proxy_protocol import (
    BODY_BYTES_MAX,
    HEAD_BYTES,
    ProxyHeader,
    ProxyHeaderError,
    body_size,
    peer_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 30.0


def read(data: bytes) -> PeerName | None:
    head, body = data[:HEAD_BYTES], data[HEAD_BYTES:]
    assert body_size(head) == len(body)
    return peer_in(head, body)


@pytest.mark.parametrize("tlvs", [b"", TLV, bytes(3000)])
def test_addresses_are_read_and_what_follows_is_passed_over(tlvs: bytes) -> None:
    assert read(of_ipv4("203.0.113.7", 4711, tlvs)) == PeerName("203.0.113.7", 4711)
    assert read(of_ipv6("2001:db8::7", 4711, tlvs)) == PeerName("2001:db8::7", 4711)
    assert read(of_path("/run/app", tlvs)) == PeerName("unix:/run/app", 0)


def test_the_balancers_own_connection_has_no_other_peer() -> None:
    assert read(LOCAL) is None
    assert read(header(0x20, 0x11, bytes(12))) is None
    unknown = read(UNKNOWN)
    assert unknown is not None
    assert unknown.address is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", "version 1 of the PROXY protocol"),
        (b"PRO", "version 1 of the PROXY protocol"),
        (b"AMQP\x03\x01\x00\x00", "no PROXY header: it begins with"),
        (b"\x16\x03\x01", "no PROXY header"),
        (SIGNATURE + b"\x11\x11\x00\x0c", "version and command 0x11"),
        (SIGNATURE + b"\x22\x11\x00\x0c", "version and command 0x22"),
        (SIGNATURE + b"\x21\x12\x00\x0c", "family and protocol 0x12"),
        (SIGNATURE + b"\x21\x11\x00\x0b", "of 11 bytes that needs 12"),
        (SIGNATURE + b"\x21\x21\x00\x0c", "of 12 bytes that needs 36"),
        (SIGNATURE + b"\x21\x31\x00\x24", "of 36 bytes that needs 216"),
        (SIGNATURE + b"\x21\x11\xff\xff", f"where {BODY_BYTES_MAX} is most"),
    ],
)
def test_what_is_no_header_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProxyHeaderError, match=message):
        body_size(data[:HEAD_BYTES])


@given(st.binary(max_size=HEAD_BYTES), st.booleans())
def test_any_octets_are_refused_or_taken(data: bytes, is_signed: bool) -> None:
    head = (SIGNATURE + data)[:HEAD_BYTES] if is_signed else data
    try:
        size = body_size(head)
    except ProxyHeaderError:
        return
    assert 0 <= size <= BODY_BYTES_MAX
    if len(head) == HEAD_BYTES:
        peer_in(head, bytes(size))


async def outcome(feed: Callable[[socket.socket], object], timeout_s: float) -> object:
    """Return what a header's reader calls back with, and what is left to be read."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()
    ProxyHeader(
        ours, timeout_s, lambda _, peer: done.set_result(peer), lambda _, why: done.set_result(why)
    )
    with ours, theirs:
        feed(theirs)
        found = await asyncio.wait_for(done, TIMEOUT_S)
        if isinstance(found, str):
            return found
        return found, await asyncio.wait_for(loop.sock_recv(ours, 100), TIMEOUT_S)


def test_not_one_octet_of_the_client_is_taken() -> None:
    data = of_ipv4("203.0.113.7", 1, TLV) + b"AMQP"
    found = asyncio.run(outcome(lambda sock: sock.sendall(data), TIMEOUT_S))
    assert found == (PeerName("203.0.113.7", 1), b"AMQP")


def test_a_header_may_come_octet_by_octet() -> None:
    async def run() -> object:
        loop = asyncio.get_running_loop()

        def feed(sock: socket.socket) -> None:
            for at, each in enumerate(of_ipv6("2001:db8::7", 1) + b"x"):
                loop.call_later(at / 1000, sock.sendall, bytes((each,)))

        return await outcome(feed, TIMEOUT_S)

    found = asyncio.run(run())
    assert isinstance(found, tuple)
    assert found[0] == PeerName("2001:db8::7", 1)


@pytest.mark.parametrize("data", [b"", SIGNATURE[:5], of_ipv4("1.2.3.4", 1)[:-1]])
def test_a_header_has_a_deadline(data: bytes) -> None:
    found = asyncio.run(outcome(lambda sock: sock.sendall(data), 0.05))
    assert found == "nothing within 0.05 s"


def test_a_connection_that_ends_is_no_header() -> None:
    found = asyncio.run(outcome(lambda sock: sock.shutdown(socket.SHUT_WR), TIMEOUT_S))
    assert found == "the end of the connection"


@pytest.mark.parametrize(
    ("networks", "host", "is_in"),
    [
        (["10.0.0.0/8"], "10.1.2.3", True),
        (["10.0.0.0/8"], "11.1.2.3", False),
        (["10.0.0.0/8"], "::ffff:10.1.2.3", True),
        (["::1"], "::1", True),
        (["fe80::/10"], "fe80::1%eth0", True),
        (["0.0.0.0/0", "::/0"], "unix:/run/x", False),
        (["0.0.0.0/0"], "", False),
        ([], "10.1.2.3", False),
    ],
)
def test_networks_hold_addresses(networks: list[str], host: str, is_in: bool) -> None:
    assert Networks(networks).holds(PeerName(host, 1)) is is_in

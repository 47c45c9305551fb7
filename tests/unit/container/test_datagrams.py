"""Datagrams: their labels, and what containers do with them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from cogwork.container.mesh.datagrams import Datagram, Datagrams
from cogwork.container.mesh.names import HOPS_MAX


class Neighbour:
    """A control connection."""

    def __init__(self, room: int = 1_000) -> None:
        self.room = room
        self.sent: list[bytes] = []

    def send_datagram(self, *parts: bytes) -> bool:
        if len(self.sent) >= self.room:
            return False
        self.sent.append(b"".join(parts))
        return True


class Mesh:
    """A container whose next hop is one neighbour for everybody it knows."""

    def __init__(self, own: str, known: set[str], neighbour: Neighbour) -> None:
        self.id = own
        self._known = known
        self._neighbour = neighbour

    def control_to(self, container: str) -> Neighbour | None:
        return self._neighbour if container in self._known else None


def datagrams(own: str, known: set[str], neighbour: Neighbour) -> tuple[Datagrams, list[Any]]:
    service = Datagrams(cast("Any", Mesh(own, known, neighbour)))
    taken: list[Any] = []
    service.take = lambda origin, data: taken.append((origin, data))
    return service, taken


def test_a_datagram_arrives_as_it_was_sent() -> None:
    wire = Neighbour()
    sender, _ = datagrams("a", {"b", "c"}, wire)
    receiver, taken = datagrams("b", {"a"}, Neighbour())
    assert sender.send("b", b"\x00octets")
    assert sender.send("b", b"")
    for datagram in wire.sent:
        receiver.receive(datagram)
    assert taken == [("a", b"\x00octets"), ("a", b"")]
    assert sender.sent == 2


def test_a_container_between_passes_it_on() -> None:
    first, second = Neighbour(), Neighbour()
    sender, _ = datagrams("a", {"ü"}, first)
    between, kept = datagrams("b", {"ü", "a"}, second)
    receiver, taken = datagrams("ü", {"a"}, Neighbour())
    sender.send("ü", b"data")
    between.receive(first.sent[0])
    receiver.receive(second.sent[0])
    assert kept == []
    assert taken == [("a", b"data")]
    assert between.passed == 1


def test_without_a_way_it_is_dropped() -> None:
    sender, _ = datagrams("a", set(), Neighbour())
    assert not sender.send("b", b"data")
    assert sender.dropped == 1


def test_where_too_much_waits_it_is_dropped() -> None:
    sender, _ = datagrams("a", {"b"}, Neighbour(room=1))
    assert sender.send("b", b"1")
    assert not sender.send("b", b"2")
    assert sender.dropped == 1


def test_one_that_goes_in_a_circle_ends() -> None:
    wire = Neighbour()
    between, _ = datagrams("b", {"c"}, wire)
    between.receive(Datagram.label("c", "a") + b"round")
    while len(wire.sent) < HOPS_MAX + 1:
        passed = len(wire.sent)
        between.receive(wire.sent[-1])
        if len(wire.sent) == passed:
            break
    assert len(wire.sent) == HOPS_MAX - 1
    assert between.dropped == 1


@pytest.mark.parametrize("length", range(len(Datagram.label("bb", "a"))))
def test_one_that_is_cut_short_is_none(length: int) -> None:
    receiver, taken = datagrams("bb", set(), Neighbour())
    with pytest.raises(ValueError, match=r"unknown version|datagram"):
        receiver.receive(Datagram.label("bb", "a")[:length])
    assert taken == []


@pytest.mark.parametrize("datagram", [b"\x02\x00\x01b\x01adata", b"\x01\x00\x01\xff\x01adata"])
def test_one_that_is_malformed_is_none(datagram: bytes) -> None:
    receiver, taken = datagrams("b", set(), Neighbour())
    with pytest.raises(ValueError, match=r"unknown version|datagram|decode"):
        receiver.receive(datagram)
    assert taken == []

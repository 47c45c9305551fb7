"""Wires on real sockets: full ones, broken ones, and what they must not tear down with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from wires import SocketBroker, SocketPeer, frame

from cogwork.amqp.outcomes import Accepted, Modified
from cogwork.amqp.performatives import Disposition, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = b"x" * 50_000


@pytest.fixture
def broker() -> Iterator[SocketBroker]:
    broker = SocketBroker()
    yield broker
    broker.close()


def test_messages_go_through_a_socket(broker: SocketBroker) -> None:
    consumer = SocketPeer(broker).greet().consumer("one/a", credit=5)
    broker.peer().publisher("one/a").send(BODY)
    assert consumer.bodies == [BODY]


def test_a_full_socket_waits_and_loses_nothing(broker: SocketBroker) -> None:
    peer = SocketPeer(broker).greet()
    consumer = peer.consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    peer.is_deaf = True
    for _ in range(100):
        publisher.send(BODY)
    assert peer.wire.blocked
    assert peer.wire.congested
    assert broker.entry("one/a").held > 0
    peer.is_deaf = False
    broker.settle_down()
    assert consumer.bodies == [BODY] * 100
    consumer.accept_all()
    broker.assert_clean()


def test_a_broken_socket_takes_nothing_from_those_served_after_it(broker: SocketBroker) -> None:
    """Its owner hears of it only when the batch has been routed: lists stay as they are."""
    broken = SocketPeer(broker).greet()
    lost = [broken.consumer("all/a", credit=100) for _ in range(2)]
    good = broker.peer().consumer("all/a", credit=100)
    publisher = broker.peer().publisher("all/a")
    broken.near.close()
    publisher.send_at_once([BODY] * 60)
    assert good.bodies == [BODY] * 60
    assert broken.finished
    good.accept_all()
    assert len(publisher.outcomes) == 60
    assert lost[0].name not in broker.links
    broker.assert_clean()


def test_a_reset_in_the_middle_of_a_large_delivery(broker: SocketBroker) -> None:
    broken = SocketPeer(broker).greet()
    broken.consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    publisher.start(BODY)
    broken.near.close()
    for _ in range(60):
        publisher.more(BODY)
    publisher.more(b"", more=False)
    assert broken.finished
    assert len(publisher.outcomes) == 1
    assert publisher.end.unsettled == 0
    broker.assert_clean()


def test_a_socket_that_cannot_be_written_is_read_to_its_last_octet(broker: SocketBroker) -> None:
    """What a peer has said stands, also where writing to it fails before that was read."""
    broken = SocketPeer(broker).greet()
    broken.consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    for _ in range(3):
        publisher.send(b"x")
    for first in (0, 2):  # nobody reads the socket here before it fails
        accepted = Disposition(role=Role.RECEIVER, first=first, settled=True, state=Accepted())
        broken.near.sendall(frame(accepted))
    broken.near.close()
    publisher.send(b"y")
    assert broken.finished
    states = list(publisher.outcomes.values())
    assert len([state for state in states if isinstance(state, Accepted)]) == 2
    assert len([state for state in states if isinstance(state, Modified)]) == 2
    broker.assert_clean()


def test_a_closed_socket_keeps_no_memory(broker: SocketBroker) -> None:
    """The objects of a connection refer to each other: they may be there for long."""
    peer = SocketPeer(broker).greet()
    peer.consumer("one/a", credit=100)
    peer.is_deaf = True
    publisher = broker.peer().publisher("one/a")
    for _ in range(20):
        publisher.send(BODY)
    peer.feed(frame(Disposition(role=Role.RECEIVER, first=0, settled=True))[:9])
    assert peer.wire.output_bytes
    assert broker.core.totals()["partial_bytes"]
    peer.wire.let_go()
    assert not peer.wire.output_bytes
    assert not broker.core.totals()["partial_bytes"]

"""Links that wait for one session's window, or one connection's room, get their turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wires import Broker

BODY = b"x" * 1000


def test_a_link_with_much_to_say_leaves_others_of_its_session_their_turn(broker: Broker) -> None:
    peer = broker.peer(incoming_window=4)
    busy = peer.consumer("one/busy", credit=1000)
    quiet = peer.consumer("one/quiet", credit=1000)
    publisher = broker.peer()
    publisher.publisher("one/busy").send_at_once([BODY] * 90)
    publisher.publisher("one/quiet").send(b"little")
    assert len(busy.arrivals) == 4
    for _ in range(2):
        peer.main.flow()
    assert quiet.bodies == [b"little"]
    while len(busy.arrivals) < 90:
        peer.main.flow()
    assert busy.bodies == [BODY] * 90


def test_a_link_with_much_to_say_leaves_others_of_its_connection_their_turn(broker: Broker) -> None:
    broker.core.congested_at_bytes = 10_000
    peer = broker.peer()
    busy = peer.consumer("one/busy", credit=1000)
    quiet = peer.begin(1).consumer("one/quiet", credit=1000)
    peer.is_deaf = True
    publisher = broker.peer()
    publisher.publisher("one/busy").send_at_once([BODY] * 90)
    publisher.publisher("one/quiet").send(b"little")
    for _ in range(3):
        peer.read(peer.wire.take_output())
        broker.core.flush()
    assert 0 < len(busy.arrivals) < 90
    assert quiet.bodies == [b"little"]
    peer.is_deaf = False
    broker.settle_down()
    assert busy.bodies == [BODY] * 90


def test_a_backlog_goes_out_as_the_peer_reads_and_not_at_once(broker: Broker) -> None:
    broker.core.congested_at_bytes = 10_000
    peer = broker.peer()
    slow = peer.consumer("all/a", credit=1000)
    peer.is_deaf = True
    broker.peer().publisher("all/a").send_at_once([BODY] * 90)
    for _ in range(3):
        peer.read(peer.wire.take_output())
        broker.core.flush()
        assert 10_000 < peer.wire.unsent_bytes < 20_000
    peer.is_deaf = False
    broker.settle_down()
    assert slow.bodies == [BODY] * 90

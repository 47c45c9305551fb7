"""What Python does for peers shares each turn of the event loop, whoever it is for."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from wires import SocketBroker, SocketPeer

from cogwork.amqp.frames import encode_frame
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.dataplane.addresses.entry import AddressEntry

SLOW_S = 0.002
"""Longer than a turn's share: a frame that takes this long is the last one of its turn."""


class SlowOwner:
    """Takes long for each frame of its wire.

    Attributes:
        frames: What came, in order.
        is_lost: Whether it was told that the socket failed.
    """

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.is_lost = False

    def on_frame(self, _frame_type: int, _channel: int, body: bytes) -> None:
        self.frames.append(body)
        time.sleep(SLOW_S)

    def on_lost(self, _errno: int) -> None:
        self.is_lost = True


class Loop:
    """A core whose turns are taken by the test.

    Attributes:
        is_due: Whether the core has asked for a turn.
    """

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self.core = Core()
        self.is_due = False
        self.core.on_unscanned = self._ask

    def _ask(self) -> None:
        self.is_due = True

    def turn(self) -> None:
        assert self.is_due
        self.is_due = False
        self.core.go_on()

    def wire(self, source: str) -> tuple[Wire, SlowOwner, socket.socket]:
        near, far = socket.socketpair()
        for each in (near, far):
            self._stack.callback(each.close)
            each.setblocking(False)
        owner = SlowOwner()
        told: Any = owner  # of what a wire tells, this is all that comes here
        wire = Wire(self.core, told, 65536, far.fileno())
        wire.source = source
        wire.start_framing()
        return wire, owner, near


@pytest.fixture
def loop() -> Iterator[Loop]:
    with contextlib.ExitStack() as stack:
        yield Loop(stack)


def frames(count: int) -> list[bytes]:
    return [b"%04d" % number for number in range(count)]


def encoded(bodies: list[bytes]) -> bytes:
    return b"".join(encode_frame(0, body) for body in bodies)


def test_who_is_read_after_a_turn_is_used_up_waits_for_the_next(loop: Loop) -> None:
    crowd = [loop.wire(f"10.0.0.{number}") for number in range(20)]
    for wire, _, near in crowd:
        near.sendall(encoded(frames(2)))
        wire.on_readable()
    assert [len(owner.frames) for _, owner, _ in crowd] == [1] + [0] * 19
    for _ in range(39):
        loop.turn()
    assert [owner.frames for _, owner, _ in crowd] == [frames(2)] * 20


def test_sources_take_turns(loop: Loop) -> None:
    first, busy, near = loop.wire("10.0.0.1")
    second, quiet, far = loop.wire("10.0.0.2")
    near.sendall(encoded(frames(50)))
    first.on_readable()
    far.sendall(encoded(frames(1)))
    second.on_readable()
    loop.turn()
    loop.turn()
    assert quiet.frames == frames(1)
    assert len(busy.frames) == 2


def test_the_rest_of_a_lost_connection_is_read_in_turns(loop: Loop) -> None:
    """All that was said before the socket failed is taken, and only then its owner is told."""
    wire, owner, near = loop.wire("10.0.0.1")
    near.sendall(encoded(frames(10)))
    wire.on_readable()
    near.sendall(encoded(frames(5)))
    near.close()
    wire.write(b"x")
    loop.core.flush()
    assert (len(owner.frames), owner.is_lost) == (1, False)
    for taken in range(2, 16):
        assert not owner.is_lost
        loop.turn()
        assert len(owner.frames) == taken
    while not owner.is_lost:
        loop.turn()
    assert owner.frames == frames(10) + frames(5)


def test_what_waits_for_its_turn_is_no_silence(loop: Loop) -> None:
    wire, _, near = loop.wire("10.0.0.1")
    near.sendall(encoded(frames(10)))
    wire.on_readable()
    before_s = wire.last_received_s
    wire.read_rest()
    assert wire.last_received_s > before_s


@pytest.mark.parametrize("settled", [False, True])
def test_addresses_that_messages_make_are_made_in_turns(settled: bool) -> None:
    """All messages of a run arrive, in order; credit and window are as if nothing had waited."""
    count = 20
    broker = SocketBroker()
    resolve = broker.space.resolver

    def resolve_slowly(address: bytes) -> AddressEntry | None:
        time.sleep(SLOW_S)
        found: AddressEntry | None = resolve(address)
        return found

    broker.space.resolver = resolve_slowly
    publisher = SocketPeer(broker).greet().publisher(None)
    consumers = [broker.peer().consumer(f"one/{number:02}", credit=5) for number in range(count)]
    turns: list[None] = []
    broker.core.on_unscanned = lambda: turns.append(None)
    before = publisher.credit
    publisher.send_at_once(
        [Message(b"x", to=f"one/{number:02}").encode() for number in range(count)], settled=settled
    )
    for arrived in range(1, count):
        assert sum(len(consumer.bodies) for consumer in consumers) == arrived
        broker.core.go_on()
        broker.settle_down()
    assert [len(consumer.bodies) for consumer in consumers] == [1] * count
    assert len(turns) >= count - 1
    for consumer in consumers:
        consumer.accept_all()
    assert len(publisher.outcomes) == (0 if settled else count)
    assert publisher.end.unsettled == 0
    assert before - count <= publisher.credit <= before
    broker.assert_clean()
    broker.close()

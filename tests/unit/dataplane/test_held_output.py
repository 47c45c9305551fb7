"""Output that is held until a barrier is released: nothing leaves too early, nothing is lost."""

from __future__ import annotations

import socket
from unittest.mock import Mock

import pytest

from cogwork.dataplane.addresses.entry import MULTICAST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.wire import Wire


class Owner:
    """Notes what its wire says."""

    def __init__(self) -> None:
        self.violations: list[tuple[str, str]] = []
        self.lost: list[int] = []

    def on_violation(self, condition: str, description: str) -> None:
        self.violations.append((condition, description))

    def on_lost(self, errno: int) -> None:
        self.lost.append(errno)


@pytest.fixture
def core() -> Core:
    return Core()


def wire_of(core: Core, fd: int = -1) -> tuple[Wire, Owner]:
    owner = Owner()
    return Wire(core, owner, 65536, fd), owner  # type: ignore[arg-type]  # as much of one as is needed


def test_what_was_written_before_the_hold_leaves_at_once(core: Core) -> None:
    wire, _ = wire_of(core)
    wire.write(b"before")
    wire.hold_output()
    wire.write(b"behind")
    assert wire.take_output() == b"before"
    assert wire.take_output() == b""
    assert (wire.unsent_bytes, wire.sendable_bytes) == (6, 0)


def test_a_release_lets_go_what_was_held_for_it_and_no_more(core: Core) -> None:
    wire, _ = wire_of(core)
    wire.hold_output()
    wire.write(b"first")
    first = core.close_barrier()
    wire.hold_output()
    wire.write(b"second")
    second = core.close_barrier()
    wire.write(b"third")
    core.release(first)
    assert wire.take_output() == b"first"
    assert core.held_connections == 1
    core.release(second)
    assert wire.take_output() == b"secondthird"
    assert core.held_connections == 0


def test_a_later_release_covers_all_before_it(core: Core) -> None:
    wire, _ = wire_of(core)
    for each in (b"1", b"2", b"3"):
        wire.hold_output()
        wire.write(each)
        last = core.close_barrier()
    core.release(last)
    assert wire.take_output() == b"123"
    core.release(last - 1)
    assert core.released_barrier == last


def test_other_connections_are_not_held(core: Core) -> None:
    held, _ = wire_of(core)
    other, _ = wire_of(core)
    held.hold_output()
    held.write(b"held")
    other.write(b"other")
    assert (held.take_output(), other.take_output()) == (b"", b"other")


def test_a_hold_for_everybody_holds_all(core: Core) -> None:
    first, _ = wire_of(core)
    second, _ = wire_of(core)
    core.hold_output()
    first.write(b"1")
    second.write(b"2")
    assert (first.take_output(), second.take_output()) == (b"", b"")
    core.release(core.close_barrier())
    assert (first.take_output(), second.take_output()) == (b"1", b"2")


def test_a_barrier_is_asked_for_once_until_it_is_closed(core: Core) -> None:
    asked: list[int] = []
    core.on_barrier = lambda: asked.append(core.open_barrier)
    wire, _ = wire_of(core)
    other, _ = wire_of(core)
    wire.hold_output()
    other.hold_output()
    wire.hold_output()
    core.close_barrier()
    wire.hold_output()
    assert asked == [1, 2]


def test_a_failure_cuts_off_what_is_held_and_closes_with_the_reason(core: Core) -> None:
    wire, owner = wire_of(core)
    other, bystander = wire_of(core)
    wire.write(b"before")
    wire.hold_output()
    wire.write(b"never")
    other.write(b"other")
    core.break_off("cogwork:disk-failed", "the disk failed")
    wire.write(b"close")
    assert wire.take_output() == b"beforeclose"
    assert owner.violations == [("cogwork:disk-failed", "the disk failed")]
    assert (other.take_output(), bystander.violations) == (b"other", [])


def test_a_connection_whose_open_is_cut_off_ends_without_a_close(core: Core) -> None:
    wire, owner = wire_of(core)
    wire.owe_open()
    wire.write(b"header")
    wire.hold_output()
    wire.write(b"open")
    wire.note_open()
    core.break_off("cogwork:disk-failed", "the disk failed")
    assert (owner.violations, owner.lost) == ([], [0])


def test_a_connection_is_told_why_where_its_open_was_sent(core: Core) -> None:
    wire, owner = wire_of(core)
    wire.owe_open()
    wire.write(b"open")
    wire.note_open()
    wire.hold_output()
    wire.write(b"never")
    core.break_off("cogwork:disk-failed", "the disk failed")
    assert (owner.violations, owner.lost) == ([("cogwork:disk-failed", "the disk failed")], [])


def test_what_is_held_for_a_closed_socket_is_not_sent_to_the_next_one(core: Core) -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    wire, _ = wire_of(core, near.fileno())
    wire.hold_output()
    wire.write(b"never")
    number = near.fileno()
    wire.let_go()
    near.close()
    far.close()
    pairs = [socket.socketpair() for _ in range(3)]
    ends = {end.fileno(): other for one, two in pairs for end, other in ((one, two), (two, one))}
    other = ends[number]
    other.setblocking(False)
    core.release(core.close_barrier())
    core.flush()
    with pytest.raises(BlockingIOError):
        other.recv(1000)
    for end in ends.values():
        end.close()


def test_a_connection_that_consensus_goes_by_is_never_held(core: Core) -> None:
    wire, _ = wire_of(core)
    wire.is_never_held = True
    wire.hold_output()
    wire.write(b"at once")
    assert wire.take_output() == b"at once"


def test_a_socket_gets_nothing_that_is_held_even_when_congested(core: Core) -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    core.congested_at_bytes = 100
    wire, _ = wire_of(core, near.fileno())
    wire.write(b"a" * 150)
    assert far.recv(1000) == b"a" * 150
    wire.hold_output()
    wire.write(b"b" * 150)
    core.flush()
    with pytest.raises(BlockingIOError):
        far.recv(1000)
    assert wire.congested
    core.release(core.close_barrier())
    assert far.recv(1000) == b"b" * 150
    assert not wire.congested
    near.close()
    far.close()


def test_a_lost_socket_forgets_what_was_held(core: Core) -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    wire, owner = wire_of(core, near.fileno())
    far.close()
    wire.write(b"lost")
    wire.hold_output()
    wire.write(b"held")
    core.flush()
    assert owner.lost
    core.release(core.close_barrier())
    assert core.held_connections == 0
    near.close()


def test_a_wire_that_has_stopped_asks_to_be_written_when_it_is_released(core: Core) -> None:
    wire, _ = wire_of(core)
    wire.hold_output()
    wire.write(b"rest")
    wire.stop()
    asked: list[bytes] = []
    wire.on_output = lambda: asked.append(wire.take_output())
    core.release(core.close_barrier())
    assert asked[0] == b"rest"


def broken_off(core: Core) -> Mock:
    """A connection that is over, and whoever takes its last output fails at it; its owner."""
    owner = Mock()
    wire = Wire(core, owner, 65536)
    wire.on_output = Mock(side_effect=RuntimeError("broken"))
    wire.hold_output()
    wire.write(b"last")
    wire.stop()
    return owner


@pytest.mark.parametrize("is_released", [True, False])
def test_who_fails_to_take_its_output_keeps_none_from_theirs(core: Core, is_released: bool) -> None:
    broken = broken_off(core)
    wire, owner = wire_of(core)
    wire.hold_output()
    wire.write(b"held")
    if is_released:
        core.release(core.close_barrier())
    else:
        core.break_off("cogwork:disk-failed", "the disk failed")
    assert wire.take_output() == (b"held" if is_released else b"")
    assert len(owner.violations) == (not is_released)
    assert core.held_connections == 0
    assert "broken" in str(broken.on_fault.call_args)


def test_a_fault_at_the_end_of_a_batch_keeps_nobody_else_from_theirs(core: Core) -> None:
    entry = AddressEntry(core, "topic/a", MULTICAST_CODE)
    handlers = [Mock() for _ in range(3)]
    handlers[1].on_batch.side_effect = RuntimeError("broken")
    for handler in handlers:
        entry.add_outlet(Port(core, handler))
    entry.send(Port(core, Mock()), 1, Message(b"to all").encode(), settled=True)
    with pytest.raises(RuntimeError, match="broken"):
        core.flush()
    assert [handler.on_batch.call_count for handler in handlers] == [1, 1, 1]

"""Items are handed over once their marks have left: not before, and in every shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from two_ends import Ends

from cogwork.amqp.outcomes import Received
from cogwork.amqp.performatives import Disposition, ReceiverSettleMode, Role, decode_performative
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.items import ItemInbox
from cogwork.dataplane.encoding.codec import decode
from cogwork.dataplane.transport.incoming import IncomingLink

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

MESSAGE = b"\x00\x53\x75\xa0\x01x"
RELEASED = b"\x00\x53\x26\x45"


class Waits(Exception):  # it is no error
    """What was asked for is not there yet."""


class Holder:
    """A client with an inbox, and a container that sends to it; bytes are carried by `run`."""

    def __init__(self, count: int, *, mark_ahead: int = 256, silence_max_s: float = 0.0) -> None:
        self.ends = Ends()
        self.silence_max_s = silence_max_s
        core = self.ends.client.core
        self.flusher = Flusher(core, lambda work: None)
        self.inbox = ItemInbox(self.flusher, Waiter, 100, ValueError, mark_ahead)
        self.attach("items")
        self.publisher = self.ends.server.peer().publisher("one/a")
        for _ in range(count):
            self.publisher.send(MESSAGE)
        self.ends.run()

    def attach(self, name: str, known: dict[bytes, Any] | None = None) -> None:
        """Attach the inbox by a new link."""
        session = self.ends.near.begin_session()
        self.ends.run()
        link = session.open_link(name, Role.RECEIVER)
        link.attach(
            source=Source(address="one/a"),
            target=Target(),
            rcv_settle_mode=ReceiverSettleMode.SECOND,
        )
        entry = AddressEntry(self.ends.client.core, "one/a", CLOSEST_CODE)
        entry.add_outlet(self.inbox)
        self.link = IncomingLink(session.end, link.handle, entry)
        self.link.settles_second = self.link.wants_tags = True
        link.carry(self.link)
        self.inbox.attach(self.link)
        self.inbox.answered(True, known, self.silence_max_s)
        self.inbox.start()
        self.ends.run()

    def marked(self) -> list[tuple[int, int]]:
        """Take what the client has written and not sent; return the ranges that it marks."""
        data = self.ends.near.wire.take_output()
        found = []
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            performative = decode_performative(data[at + 8 : at + size], 0, decode)[0]
            if isinstance(performative, Disposition) and isinstance(performative.state, Received):
                found.append((performative.first, performative.last or performative.first))
            at += size
        self.ends.far.wire.feed(data)
        self.ends.run()
        return found


class Waiter:
    """What the inbox waits for; who awaits it hears of it by `Waits`."""

    def __init__(self) -> None:
        self.is_done = False

    def done(self) -> bool:
        return self.is_done

    def set_result(self, _value: object) -> None:
        self.is_done = True

    def __await__(self) -> Any:
        while not self.is_done:
            yield self


class Task:
    """Runs a coroutine as far as it goes."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work

    def go_on(self) -> Any:
        """Return what it returned. Raises `Waits` where it waits for something."""
        for _ in range(10):  # it may let the loop go round
            try:
                waiter = self._work.send(None)
            except StopIteration as done:
                return done.value
            if waiter is not None:
                raise Waits
        raise AssertionError("it goes round and round")


def one_of(inbox: ItemInbox) -> Task:
    """Take an item as `async for` does."""
    return Task(cast("Coroutine[Any, Any, Any]", inbox.__anext__()))


def batch_of(inbox: ItemInbox) -> Task:
    """Take a few items at once."""
    return Task(inbox.take_batch(3))


@pytest.mark.parametrize(("take", "count"), [(one_of, 1), (batch_of, 3)])
def test_nothing_is_handed_over_before_its_mark_has_left(
    take: Callable[[ItemInbox], Task], count: int
) -> None:
    holder = Holder(5)
    task = take(holder.inbox)
    with pytest.raises(Waits):
        task.go_on()
    assert holder.inbox.held == 0
    with pytest.raises(Waits):
        task.go_on()
    assert holder.marked() == [(0, count - 1)]
    task.go_on()
    assert holder.inbox.held == count
    assert holder.inbox.waiting == 5 - count


def test_items_of_several_reads_are_one_batch_and_marked_as_one() -> None:
    holder = Holder(2)
    with pytest.raises(Waits):
        Task(holder.inbox.take_batch(1)).go_on()
    holder.marked()
    holder.publisher.send(MESSAGE)
    holder.ends.run()
    task = Task(holder.inbox.take_batch(10))
    with pytest.raises(Waits):
        task.go_on()
    assert holder.marked() == [(1, 2)], "the first is marked already"
    assert len(task.go_on()) == 3


def test_what_was_marked_and_taken_back_is_not_handed_over() -> None:
    holder = Holder(4)
    task = Task(holder.inbox.take_batch(2))
    with pytest.raises(Waits):
        task.go_on()
    assert holder.inbox.marked == 2
    holder.inbox.confirm(1, 2, RELEASED)
    assert holder.inbox.marked == 1
    assert holder.inbox.waiting == 2
    assert holder.marked() == [(0, 1)]
    with pytest.raises(Waits):
        task.go_on()
    assert holder.marked() == [(3, 3)], "the next one, in the place of what went"
    assert [item.stage for item in task.go_on()] == ["held"] * 2


def test_marked_items_of_a_lost_link_are_presented_and_wait_again() -> None:
    holder = Holder(4)
    with pytest.raises(Waits):
        Task(holder.inbox.take_batch(2)).go_on()
    holder.marked()
    holder.inbox.detach()
    assert holder.inbox.waiting == 0
    presented = holder.inbox.unsettled_map(10_000)
    assert len(presented) == 2, "those that were not marked are the owner's again"
    holder.attach("again")
    # The same tags come again, as a container sends what it resumes.
    holder.inbox.detach()
    assert holder.inbox.unsettled_map(10_000) == presented
    assert holder.inbox.held == 0
    holder.attach("stale", dict.fromkeys(presented, RELEASED))
    assert not holder.inbox.has_earlier


def test_who_was_silent_for_long_asks_before_anything_is_handed_over() -> None:
    holder = Holder(3, silence_max_s=1e-9)
    task = one_of(holder.inbox)
    with pytest.raises(Waits):
        task.go_on()
    assert holder.inbox.marked == 0
    assert holder.marked() == []  # it is a flow that left, and the answer has come
    with pytest.raises(Waits):
        task.go_on()
    assert holder.marked() == [(0, 0)]
    task.go_on()
    assert holder.inbox.held == 1


def test_a_link_that_ends_meanwhile_hands_over_nothing() -> None:
    holder = Holder(3)
    task = one_of(holder.inbox)
    with pytest.raises(Waits):
        task.go_on()
    holder.inbox.detach()
    with pytest.raises(Waits):
        task.go_on()
    assert holder.inbox.held == 0


def test_a_connection_that_is_gone_does_not_keep_anybody() -> None:
    holder = Holder(3)
    task = one_of(holder.inbox)
    with pytest.raises(Waits):
        task.go_on()
    holder.inbox.close()
    holder.inbox.detach()
    with pytest.raises(StopAsyncIteration):
        task.go_on()

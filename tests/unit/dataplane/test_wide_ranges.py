"""Dispositions over ranges of which next to nothing is there: they cost what is there."""

from __future__ import annotations

import asyncio
import time

from two_ends import Ends
from wires import Broker, frame

from cogwork.amqp.performatives import Disposition, ReceiverSettleMode, Role
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.items import Item, ItemInbox
from cogwork.dataplane.transport.incoming import IncomingLink

WIDE = 2**27
"""Deliveries; to look for each of them takes seconds."""

LONG_S = 0.5

COUNT = 4000

ACCEPTED = b"\x00\x53\x24\x45"
RELEASED = b"\x00\x53\x26\x45"
MESSAGE = b"\x00\x53\x75\xa0\x01x"


class Holder:
    """A client that holds items of a queue."""

    def __init__(self, count: int) -> None:
        self.ends = Ends()
        core = self.ends.client.core
        self.inbox = ItemInbox(Flusher(core, lambda work: work()), asyncio.Future, 100, ValueError)
        session = self.ends.near.begin_session()
        self.ends.run()
        link = session.open_link("items", Role.RECEIVER)
        link.attach(
            source=Source(address="one/a"),
            target=Target(),
            rcv_settle_mode=ReceiverSettleMode.SECOND,
        )
        entry = AddressEntry(core, "one/a", CLOSEST_CODE)
        entry.add_outlet(self.inbox)
        end = IncomingLink(session.end, link.handle, entry)
        end.settles_second = end.wants_tags = True
        link.carry(end)
        self.inbox.attach(end)
        self.inbox.start()
        self.ends.run()
        self.publisher = self.ends.server.peer().publisher("one/a")
        for _ in range(count):
            self.publisher.send(MESSAGE)
        self.ends.run()

    def take(self, count: int) -> list[Item]:
        """Take what has arrived."""
        return [self._next() for _ in range(count)]

    def _next(self) -> Item:
        try:
            self.inbox.__anext__().__await__().send(None)
        except StopIteration as taken:
            item: Item = taken.value
            return item
        raise AssertionError("nothing has arrived")


def test_a_confirmation_of_all_that_ever_may_be_costs_what_is_held() -> None:
    holder = Holder(5)
    items = holder.take(5)
    for item in items[:3]:
        item.accept_nowait()
    before_s = time.process_time()
    holder.inbox.confirm(0, WIDE, ACCEPTED)
    assert time.process_time() - before_s < LONG_S
    assert [item.stage for item in items] == ["settled"] * 5
    assert holder.inbox.claimed == holder.inbox.held == 0
    holder.publisher.send(MESSAGE)
    holder.ends.run()
    assert holder.take(1)[0].stage == "held", "what comes later is another item"


def test_a_confirmation_takes_back_what_waits_in_its_range_alone() -> None:
    holder = Holder(6)
    held, *_ = holder.take(2)
    holder.inbox.confirm(1, 3, RELEASED)
    assert held.stage == "held"
    assert holder.inbox.waiting == 2
    assert [item.stage for item in holder.take(2)] == ["held"] * 2


def test_dispositions_of_what_was_never_sent_cost_nothing() -> None:
    broker = Broker(window=2 * COUNT)
    peer = broker.peer()
    consumer = peer.consumer("one/a", credit=COUNT + 1)
    publisher = broker.peer().publisher("one/a")
    publisher.send_at_once([b"x"] * COUNT)
    assert len(consumer.arrivals) == COUNT
    peer.main.settle(0, 2**31 - 1)
    session = peer.connection.sessions[0].end
    assert session.unsettled == 0
    said = frame(Disposition(role=Role.RECEIVER, first=0, last=2**31 - 1, settled=True))
    before_s = time.process_time()
    peer.wire.feed(said * 50_000)
    assert time.process_time() - before_s < LONG_S
    publisher.send(b"y")
    assert consumer.arrivals[-1].body == b"y"
    assert session.unsettled == 1
    peer.main.settle(COUNT, 2**31 - 1)
    assert session.unsettled == 0
    broker.assert_clean()


def test_a_disposition_ahead_of_what_was_sent_settles_nothing(broker: Broker) -> None:
    peer = broker.peer()
    consumer = peer.consumer("one/a", credit=5)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"x")
    peer.main.settle(1, 3)
    publisher.send(b"y")
    session = peer.connection.sessions[0].end
    assert session.unsettled == 2
    for arrival in consumer.arrivals:
        peer.main.settle(arrival.id)
    assert session.unsettled == 0
    broker.assert_clean()

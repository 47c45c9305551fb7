"""A reader's end of a stream: what a block sends is what is taken, however that is done."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from peers import Peer

from cogwork.amqp.types import ULong
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.stream_inbox import StreamInbox
from cogwork.dataplane.client.stream_records import Records
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.stream.blocks import Block
from cogwork.dataplane.stream.feed import Feed
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.io.turn import Turn
from cogwork.nodes.stream.reader import marker_of
from cogwork.plugin.engine.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from cogwork.dataplane.client.stream_records import Record

FIRST = 1000
PRODUCER = b"who made them"
TIME_MS = 1_700_000_000_000


def looped(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test on an event loop."""

    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Line:
    """A stream's sending link, and a reader's inbox on the other side."""

    def __init__(self, window: int, turn: Turn | None = None) -> None:
        self.sender, self.receiver = Peer(Core()), Peer(Core())
        self.link = OutgoingLink(self.sender.session, 0, presettles=True)
        self.sender.session.map_link(0, self.link)
        self.feed = Feed(self.sender.core, self)
        core = self.receiver.core
        loop = asyncio.get_running_loop()
        waiter: Callable[[], Awaitable[Any]] = loop.create_future if turn is None else turn.waiter
        self.inbox = StreamInbox(Flusher(core, lambda run: run()), waiter, window)
        entry = AddressEntry(core, "stream/line", CLOSEST_CODE)
        entry.add_outlet(self.inbox)
        end = IncomingLink(self.receiver.session, 0, entry)
        self.receiver.session.map_link(0, end)
        self.inbox.attach(end)
        self.inbox.start()
        self.carry()

    def on_batch(self, feed: Feed) -> None:
        feed.woken = []

    def carry(self) -> None:
        """Bring each side what the other one has sent."""
        self.receiver.core.flush()
        while said := self.receiver.wire.take_output():
            self.sender.wire.feed(said)
        self.sender.core.flush()
        while said := self.sender.wire.take_output():
            self.receiver.wire.feed(said)

    def send(self, block: Block, offset: int, *, is_alone: bool = False) -> int:
        following = block.send(self.link, self.feed, offset, is_alone)
        self.carry()
        return following

    def send_one(self, message: bytes) -> None:
        assert self.link.send(self.feed, 0, message, True)
        self.carry()


def made(chance: random.Random, count: int) -> list[Message]:
    """Make messages of many kinds."""
    kinds = (
        lambda: Message(chance.randbytes(chance.choice((0, 1, 100, 255, 256, 1000)))),
        lambda: Message(chance.randbytes(100_000)),
        lambda: Message({"a": chance.random()}, subject="it"),
        lambda: Message("words", annotations={"x-own": 1, "x-opt-producer": PRODUCER}),
        lambda: Message.data(b"two", b"parts"),
        lambda: Message(b"with", properties={"n": 1}, priority=7),
    )
    return [chance.choices(kinds, (20, 1, 3, 0, 3, 3))[0]() for _ in range(count)]


def block_of(messages: list[Message], chance: random.Random | None = None) -> Block:
    """Make a block of records, as a stream keeps them: in one chunk, or in some."""
    block, start = Block(FIRST), 0
    while start < len(messages):
        end = len(messages) if chance is None else start + chance.randrange(1, 600)
        records = [message.encode() for message in messages[start:end]]
        batch = Batch.of(records, PRODUCER, 7 + start)
        block.add(TIME_MS + start, PRODUCER, 7 + start, batch.count, batch.payload)
        start += batch.count
    return block


async def taken(line: Line, chance: random.Random) -> list[Record]:
    """Take some of what is there, in one of the ways there are."""
    way = chance.randrange(4)
    if way == 0:
        return [await line.inbox.__anext__() for _ in range(min(line.inbox.waiting, 300))]
    if way == 1:
        return list(await line.inbox.take_batch(chance.randrange(1, 50)))
    records = await line.inbox.take_batch(10_000)
    return [records[index] for index in range(len(records))] if way == 2 else list(records)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_sent_arrives_however_it_is_taken(seed: int) -> None:
    asyncio.run(_take_all(seed))


async def _take_all(seed: int) -> None:
    chance = random.Random(seed)
    messages = made(chance, 1200)
    line, block = Line(chance.choice((3, 100, 10_000))), block_of(messages, chance)
    is_alone = chance.choice((False, True))
    found: list[Record] = []
    offset = FIRST
    while len(found) < len(messages):
        offset = line.send(block, offset, is_alone=is_alone)
        if line.inbox.waiting:
            found += await taken(line, chance)
        assert line.inbox.next_offset == FIRST + len(found) + line.inbox.waiting, f"seed {seed}"
    assert [record.offset for record in found] == list(range(FIRST, FIRST + len(messages)))
    for number, (record, message) in enumerate(zip(found, messages, strict=True)):
        assert record.body == message.body, f"seed {seed}, record {number}"
        assert record.properties == message.properties
        assert (record.producer, record.producer_sequence) == (PRODUCER, 7 + number)
        assert record.time_ms >= TIME_MS
    assert line.inbox.undecodable == 0


@looped
async def test_records_are_a_sequence() -> None:
    line = Line(1000)
    line.send(block_of([Message(bytes([number])) for number in range(20)]), FIRST)
    records: Any = await line.inbox.take_batch(1000)
    assert isinstance(records, Records)
    assert isinstance(records, Sequence)
    offsets = list(range(FIRST, FIRST + 20))
    assert [record.offset for record in records] == offsets
    assert [record.offset for record in reversed(records)] == offsets[::-1]
    for index in (0, 7, 19, -1, -20):
        assert records[index].offset == offsets[index]
    for index in (20, -21):
        with pytest.raises(IndexError, match="of 20"):
            records[index]
    places = (slice(None), slice(3, 9), slice(None, None, 5), slice(-4, None), slice(9, 2, -3))
    for place in places:
        assert [record.offset for record in records[place]] == offsets[place]
        assert [record.offset for record in records[place][1:]] == offsets[place][1:]
    assert not records[5:5]
    assert records[5:5] == []
    assert records == list(records)
    assert records[1:] != records[:-1]
    assert repr(records) == "<20 records>"


@looped
async def test_what_is_held_outlives_what_comes_after_it() -> None:
    line = Line(64)
    block = block_of([Message(bytes([number])) for number in range(200)])
    offset = line.send(block, FIRST)
    held: list[Sequence[Record]] = []
    while line.inbox.waiting:
        held.append(await line.inbox.take_batch(7))
        offset = line.send(block, offset)
    assert [record.body for records in held for record in records] == [
        bytes([number]) for number in range(200)
    ]


@looped
async def test_a_block_that_was_sent_straight_is_sent_to_others_as_well() -> None:
    block = block_of([Message(bytes([number])) for number in range(100)], random.Random(1))
    first, second = Line(37), Line(100)
    offset = first.send(block, FIRST, is_alone=True)
    assert offset == FIRST + 37
    assert (block.is_closed, block.is_encoded) == (True, False)
    assert second.send(block, FIRST + 5) == FIRST + 100
    assert block.is_encoded
    assert second.inbox.waiting == 95
    found = await second.inbox.take_batch(200)
    assert [record.offset for record in found] == list(range(FIRST + 5, FIRST + 100))
    offsets: list[int] = []
    while len(offsets) < 100:
        if first.inbox.waiting:
            offsets += [record.offset for record in await first.inbox.take_batch(200)]
        offset = first.send(block, offset, is_alone=True)
    assert offsets == list(range(FIRST, FIRST + 100))


@looped
async def test_damaged_records_are_told_before_anything_of_their_run_is_sent() -> None:
    line, block = Line(100), Block(FIRST)
    block.add(TIME_MS, PRODUCER, 0, 2, Batch.of([Message(b"one").encode(), b"none"]).payload)
    with pytest.raises(ValueError, match="no message"):
        line.send(block, FIRST, is_alone=True)
    short = Block(FIRST)
    short.add(TIME_MS, PRODUCER, 0, 2, Batch.of([Message(b"one").encode()]).payload)
    with pytest.raises(ValueError, match="fewer"):
        line.send(short, FIRST, is_alone=True)
    line.carry()
    assert line.inbox.waiting == 0


@looped
async def test_the_marker_comes_between_records_and_is_none() -> None:
    line = Line(100)
    told: list[int] = []
    line.inbox.on_caught_up = lambda: told.append(1)
    assert line.inbox.next_offset is None
    line.send(block_of([Message(b"one"), Message(b"two")]), FIRST)
    line.send_one(marker_of(FIRST + 2))
    assert not line.inbox.is_caught_up
    assert len(await line.inbox.take_batch(1)) == 1
    assert not told
    assert len(await line.inbox.take_batch(1)) == 1
    assert told == [1]
    assert line.inbox.is_caught_up


@looped
async def test_a_snapshot_says_where_to_go_on_and_what_is_no_message_is_counted() -> None:
    line = Line(100)
    snapshot = Message(b"state", annotations={"x-opt-snapshot": ULong(44)})
    line.send_one(snapshot.encode())
    assert line.inbox.next_offset == 44
    line.send_one(b"\x00\x53\x99 no message")
    assert line.inbox.undecodable == 1
    (record,) = await line.inbox.take_batch(10)
    assert record.is_snapshot
    assert (record.offset, record.body) == (44, b"state")


@looped
async def test_a_record_of_several_frames_is_not_copied() -> None:
    line = Line(10)
    block = block_of([Message(bytes(100_000)), Message(b"small"), Message(b"last")])
    offset = line.send(block, FIRST)
    while line.inbox.waiting < 3:
        offset = line.send(block, offset)
    first = await line.inbox.take_batch(1)
    assert first[0].encode() is first[0].encode()
    assert first[0].body == bytes(100_000)
    rest = await line.inbox.take_batch(10)
    assert [record.body for record in rest] == [b"small", b"last"]
    assert [record.offset for record in (*first, *rest)] == [FIRST, FIRST + 1, FIRST + 2]


@looped
async def test_a_task_has_records_before_the_loop_goes_on_from_where_they_were_read() -> None:
    loop = asyncio.get_running_loop()
    turn = Turn(loop)
    line = Line(10, turn)
    block = block_of([Message(b"one"), Message(b"two")])
    had: list[int] = []

    async def take() -> None:
        while records := await line.inbox.take_batch(10):
            had.append(len(records))

    task = loop.create_task(take())
    await asyncio.sleep(0)
    then: list[int] = []
    loop.call_soon(turn.read, functools.partial(line.send, block, FIRST))
    loop.call_soon(lambda: then.extend(had))
    await asyncio.sleep(0)
    assert then == [2]
    line.inbox.close()
    await task

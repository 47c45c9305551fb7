"""Where a stream's messages come in, and its records go out."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import peers
import pytest

from cogwork.amqp.message import Data, Header, Sections, decode_sections, encode_sections
from cogwork.amqp.outcomes import Accepted, Rejected, Released
from cogwork.amqp.types import Symbol, Timestamp, UInt, ULong
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, MULTICAST_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.stream.blocks import Block
from cogwork.dataplane.stream.feed import Feed
from cogwork.dataplane.stream.intake import CaptureOutlet, Intake, RecordBatch
from cogwork.plugin.engine.batch import unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.dataplane.transport.outgoing import OutgoingLink

ACCEPTED, REJECTED, RELEASED = 0x24, 0x25, 0x26
PRODUCER, SEQUENCE = Symbol("x-opt-producer"), Symbol("x-opt-sequence")


def message(text: str, **annotations: object) -> bytes:
    """Encode a message; `x_opt_sequence` is an annotation's name."""
    named = {Symbol(key.replace("_", "-")): value for key, value in annotations.items()}
    return encode_sections(
        Sections(message_annotations=named or None, body=Data([text.encode()]))  # type: ignore[arg-type]  # a test's own
    )


def stamped(text: str, sequence: int, producer: object = b"me") -> bytes:
    return message(text, x_opt_producer=producer, x_opt_sequence=ULong(sequence))


class Desk:
    """An intake behind an address, with one publisher."""

    def __init__(self) -> None:
        self.core = Core()
        self.intake = Intake(self.core, self)
        self.intake.is_open = True
        self.entry = AddressEntry(self.core, "stream/a", CLOSEST_CODE)
        self.entry.add_outlet(self.intake)
        self.intake.inlet = self.entry
        self.record_batches: list[RecordBatch] = []
        self.publisher = peers.Peer(self.core)
        self.link = self.publisher.publisher(self.entry)

    def on_record_batches(self, record_batches: Sequence[RecordBatch]) -> None:
        self.record_batches += record_batches

    def send(self, *messages: bytes, settled: bool = False) -> int:
        first = self.publisher.send_run(self.link, list(messages), settled=settled)
        self.core.flush()
        return first

    def outcomes(self) -> dict[int, object]:
        self.core.flush()
        self.publisher.hear()
        return dict(self.publisher.outcomes())


def test_a_run_of_one_link_becomes_one_batch_and_is_answered_as_a_whole() -> None:
    desk = Desk()
    first = desk.send(*(message(str(number)) for number in range(50)))
    (record_batch,) = desk.record_batches
    assert (record_batch.count, record_batch.producer, record_batch.sequence) == (50, b"", 0)
    assert list(unpack(record_batch.payload)) == [message(str(number)) for number in range(50)]
    assert desk.outcomes() == {}
    record_batch.settle(ACCEPTED)
    record_batch.settle(RELEASED)
    assert desk.outcomes() == {first + at: Accepted() for at in range(50)}
    assert desk.intake.pending_bytes == 0


def test_a_batch_has_one_producer_and_no_gap() -> None:
    desk = Desk()
    desk.send(
        stamped("a", 0),
        stamped("b", 1),
        stamped("again", 1),
        stamped("c", 2),
        stamped("later", 7),
        stamped("other", 8, "you"),
        message("nobody's"),
        message("nobody's"),
    )
    assert [(each.producer, each.sequence, each.count) for each in desk.record_batches] == [
        (b"me", 0, 2),
        (b"me", 1, 2),
        (b"me", 7, 1),
        (b"you", 8, 1),
        (b"", 0, 2),
    ]


def taken(desk: Desk) -> list[tuple[bytes, int, bytes]]:
    """Return each record with its producer and its sequence."""
    return [
        (record_batch.producer, record_batch.sequence + number, record)
        for record_batch in desk.record_batches
        for number, record in enumerate(unpack(record_batch.payload))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_what_comes_as_a_run_is_what_comes_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    messages: list[bytes] = []
    sequences = {b"me": 250, b"you": 1 << 40, b"x" * 64: 300}
    producer = b"me"
    while len(messages) < 300:
        kind = chance.choices(range(6), (30, 2, 2, 2, 1, 1))[0]
        if kind == 1:
            producer = chance.choice(list(sequences))
        elif kind == 2:
            sequences[producer] += chance.choice((-1, 1, 5))
        elif kind == 3:
            messages.append(message("nobody's"))
        text = "a" * chance.choice((0, 1, 100, 300 if kind == 4 else 50))
        extra = {"x_own": chance.random()} if kind == 5 else {}
        number = ULong(sequences[producer])
        messages.append(message(text, x_opt_producer=producer, x_opt_sequence=number, **extra))
        sequences[producer] += 1
    at_once, one_by_one = Desk(), Desk()
    at_once.send(*messages)
    for each in messages:
        one_by_one.send(each)
    assert taken(at_once) == taken(one_by_one), f"seed {seed}"
    assert len(at_once.record_batches) < len(one_by_one.record_batches)
    for record_batch in at_once.record_batches:
        record_batch.settle(ACCEPTED)
    assert set(at_once.outcomes()) == set(range(len(messages)))


NUMBER = "(expected a whole number from 0 to 2^63 - 1)"


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        (
            {PRODUCER: 5, SEQUENCE: ULong(0)},
            "x-opt-producer is a long (expected a binary, a string or a UUID of 1 to 64 octets)",
        ),
        (
            {PRODUCER: b"p" * 65, SEQUENCE: ULong(0)},
            "x-opt-producer is out of range "
            "(expected a binary, a string or a UUID of 1 to 64 octets)",
        ),
        ({PRODUCER: b"p", SEQUENCE: "0"}, f"x-opt-sequence is a string {NUMBER}"),
        ({PRODUCER: b"p", SEQUENCE: 1.0}, f"x-opt-sequence is a double {NUMBER}"),
        ({PRODUCER: b"p", SEQUENCE: None}, f"x-opt-sequence is null {NUMBER}"),
        ({PRODUCER: b"p", SEQUENCE: -1}, f"x-opt-sequence is out of range {NUMBER}"),
        ({PRODUCER: b"p", SEQUENCE: ULong(2**63)}, f"x-opt-sequence is out of range {NUMBER}"),
        ({Symbol("x-opt-snapshot"): "5"}, f"x-opt-snapshot is a string {NUMBER}"),
        ({PRODUCER: b"p"}, "x-opt-producer without x-opt-sequence"),
        ({SEQUENCE: ULong(1)}, "x-opt-sequence without x-opt-producer"),
    ],
    ids=str,
)
def test_what_is_not_understood_is_rejected_and_named(
    annotations: dict[Symbol | ULong, object], text: str
) -> None:
    desk = Desk()
    desk.send(encode_sections(Sections(message_annotations=annotations, body=Data([b"b"]))))
    (outcome,) = desk.outcomes().values()
    assert isinstance(outcome, Rejected)
    assert outcome.error is not None
    assert (outcome.error.condition, outcome.error.description) == ("amqp:invalid-field", text)
    assert desk.record_batches == []


def test_what_a_stream_says_itself_is_no_part_of_a_record() -> None:
    desk = Desk()
    header = Header(durable=True)
    given: dict[Symbol | ULong, object] = {
        Symbol("x-mine"): "kept",
        PRODUCER: b"me",
        SEQUENCE: UInt(5),
        Symbol("x-opt-offset"): ULong(1),
        Symbol("x-opt-time"): Timestamp(2),
        Symbol("x-opt-caught-up"): ULong(3),
        Symbol("x-opt-timeout"): "kept",
    }
    desk.send(
        encode_sections(
            Sections(
                header=header,
                delivery_annotations={Symbol("x-hop"): 1},
                message_annotations=given,
                body=Data([b"x"]),
            )
        )
    )
    (record,) = unpack(desk.record_batches[0].payload)
    kept = decode_sections(record)
    assert kept.header == header
    assert kept.delivery_annotations is None
    assert kept.message_annotations == {
        Symbol("x-mine"): "kept",
        Symbol("x-opt-timeout"): "kept",
    }
    assert kept.body == Data([b"x"])


@pytest.mark.parametrize(
    "bad",
    [
        message("x", x_opt_producer=b"me"),
        message("x", x_opt_sequence=ULong(1)),
        message("x", x_opt_producer=b"", x_opt_sequence=ULong(1)),
        message("x", x_opt_producer=b"p" * 65, x_opt_sequence=ULong(1)),
        message("x", x_opt_producer=1, x_opt_sequence=ULong(1)),
        message("x", x_opt_producer=b"me", x_opt_sequence=-1),
        message("x", x_opt_producer=b"me", x_opt_sequence=ULong(1 << 63)),
        message("x", x_opt_producer=b"me", x_opt_sequence="1"),
        b"\x00\x53\x75\xa0\x09short",
        b"\x00\x53\x72\xc1\x03\x02\xa3\x05" + b"\x00\x53\x75\xa0\x00",
        b"\x00\x53\x72\x45",
        b"garbage",
    ],
)
def test_a_message_that_cannot_be_kept_is_rejected_alone(bad: bytes) -> None:
    desk = Desk()
    first = desk.send(message("before"), bad, message("after"))
    (record_batch,) = desk.record_batches
    record_batch.settle(ACCEPTED)
    outcomes = desk.outcomes()
    assert isinstance(outcomes.pop(first + 1), Rejected)
    assert outcomes == {first: Accepted(), first + 2: Accepted()}
    assert list(unpack(record_batch.payload)) == [message("before"), message("after")]
    assert desk.intake.refused == 1


def test_a_full_intake_has_the_address_hold_what_comes_until_there_is_room() -> None:
    desk = Desk()
    desk.intake.pending_bytes_max = 100
    body = message("x" * 120)
    desk.send(body, settled=True)
    desk.send(body, body)
    assert len(desk.record_batches) == 1
    assert desk.entry.held == 2
    desk.record_batches[0].settle(ACCEPTED)
    desk.core.flush()
    assert desk.entry.held == 1
    desk.record_batches[1].settle(ACCEPTED)
    desk.core.flush()
    assert [each.count for each in desk.record_batches] == [1, 1, 1]


def test_a_closed_intake_takes_nothing() -> None:
    desk = Desk()
    desk.intake.is_open = False
    desk.send(message("early"))
    assert desk.record_batches == []
    assert desk.entry.held == 1
    desk.intake.is_open = True
    desk.intake.resume()
    desk.core.flush()
    assert [each.count for each in desk.record_batches] == [1]


def test_a_snapshot_is_a_batch_of_its_own() -> None:
    desk = Desk()
    snapshot = message("state", x_opt_snapshot=ULong(7))
    desk.send(message("a"), snapshot, message("b"))
    assert [(each.is_snapshot, each.snapshot, each.count) for each in desk.record_batches] == [
        (False, 0, 1),
        (True, 7, 1),
        (False, 0, 1),
    ]
    assert desk.record_batches[1].payload == message("state")


class Outlets:
    """Lets a peer's consumer take from an address."""

    def __init__(self, entry: AddressEntry) -> None:
        self.add_consumer = entry.add_outlet


def test_a_captured_message_is_accepted_only_once_it_is_kept() -> None:
    desk = Desk()
    topic = AddressEntry(desk.core, "topic/a", MULTICAST_CODE)
    topic.add_outlet(CaptureOutlet(desk.intake))
    consumer = peers.Peer(desk.core)
    consumer.consumer(Outlets(topic), 10)  # type: ignore[arg-type]  # all that it needs
    publisher = peers.Peer(desk.core)
    link = publisher.publisher(topic)
    sent = [publisher.send(link, message(text)) for text in "abc"]
    desk.core.flush()
    consumer.hear()
    for arrival in consumer.take():
        consumer.settle(arrival, Accepted())
    desk.core.flush()
    assert publisher.outcomes() == {}
    assert [part for each in desk.record_batches for part in unpack(each.payload)] == [
        message(text) for text in "abc"
    ]
    desk.record_batches[0].settle(ACCEPTED)
    for record_batch in desk.record_batches[1:]:
        record_batch.settle(REJECTED)
    desk.core.flush()
    outcomes = publisher.outcomes()
    assert len(outcomes) == 3
    assert outcomes[sent[0]] == Accepted()
    if len(desk.record_batches) > 1:
        assert outcomes[sent[-1]] != Accepted()


def test_a_capture_drops_what_is_settled_and_too_much() -> None:
    desk = Desk()
    desk.intake.pending_bytes_max = 10
    topic = AddressEntry(desk.core, "topic/a", MULTICAST_CODE)
    topic.add_outlet(CaptureOutlet(desk.intake))
    publisher = peers.Peer(desk.core)
    link = publisher.publisher(topic)
    publisher.send(link, message("kept"), settled=True)
    publisher.send(link, message("dropped"), settled=True)
    publisher.send(link, message("kept, for somebody waits"))
    desk.core.flush()
    assert sum(each.count for each in desk.record_batches) == 2
    assert desk.intake.missed == 1


# -- the way out


class Reader:
    """A feed with one receiver."""

    def __init__(self, credit: int, **options: int) -> None:
        self.core = Core()
        self.feed = Feed(self.core, self)
        self.peer = peers.Peer(self.core, **options)
        self.woken = 0
        self.link = self.peer.consumer(self, credit)  # type: ignore[arg-type]  # all that it needs

    def add_consumer(self, link: OutgoingLink) -> None:
        link.feeder = self.feed

    def on_batch(self, feed: Feed) -> None:
        self.woken += len(feed.woken)
        feed.woken.clear()

    def taken(self) -> list[peers.Arrival]:
        self.core.flush()
        self.peer.hear()
        return self.peer.take()


def block_of(*records: bytes, offset: int = 10, producer: bytes = b"") -> Block:
    block = Block(offset)
    payload = b"".join(len(each).to_bytes(4, "big") + each for each in records)
    block.add(1_000, producer, 40, len(records), payload)
    return block


def test_a_block_is_sent_as_far_as_credit_goes_and_on_from_there() -> None:
    reader = Reader(credit=3)
    block = block_of(*(message(str(number)) for number in range(10)))
    assert block.send(reader.link, reader.feed, 10) == 13
    assert block.send(reader.link, reader.feed, 13) == 13
    reader.peer.flow(reader.link, 100)
    reader.core.flush()
    assert reader.woken
    assert block.send(reader.link, reader.feed, 13) == 20
    arrivals = reader.taken()
    assert [decode_sections(each.message).body for each in arrivals] == [
        Data([str(number).encode()]) for number in range(10)
    ]
    assert [
        (decode_sections(each.message).message_annotations or {})[Symbol("x-opt-offset")]
        for each in arrivals
    ] == list(range(10, 20))


def test_records_say_where_they_stand_before_what_they_said_themselves() -> None:
    reader = Reader(credit=10)
    long = {f"x{number}": "y" * 20 for number in range(20)}
    block = block_of(message("a", x_mine=1), message("b", **long), producer=b"me")
    assert block.send(reader.link, reader.feed, 10) == 12
    first, second = (decode_sections(each.message) for each in reader.taken())
    assert first.message_annotations == {
        Symbol("x-opt-offset"): 10,
        Symbol("x-opt-time"): datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        SEQUENCE: 40,
        PRODUCER: b"me",
        Symbol("x-mine"): 1,
    }
    assert second.message_annotations is not None
    assert second.message_annotations[SEQUENCE] == 41
    assert len(second.message_annotations) == 24


def test_a_block_can_be_sent_from_its_middle_and_by_several_chunks() -> None:
    reader = Reader(credit=10)
    block = block_of(message("a"), message("b"))
    payload = message("c")
    block.add(2_000, b"", 0, 1, len(payload).to_bytes(4, "big") + payload)
    assert (block.next_offset, block.is_closed, block.is_encoded) == (13, False, False)
    assert block.send(reader.link, reader.feed, 11) == 13
    assert (block.is_closed, block.is_encoded) == (True, True)
    with pytest.raises(ValueError, match="gets no more"):
        block.add(3_000, b"", 0, 1, b"")
    assert [decode_sections(each.message).body for each in reader.taken()] == [
        Data([b"b"]),
        Data([b"c"]),
    ]


def test_a_record_larger_than_a_frame_arrives_whole() -> None:
    reader = Reader(credit=3, frame_size=4096)
    block = block_of(message("x" * 10_000), message("small"))
    offset = 10
    while offset < 12:
        offset = block.send(reader.link, reader.feed, offset)
        reader.core.flush()
    assert [decode_sections(each.message).body for each in reader.taken()] == [
        Data([b"x" * 10_000]),
        Data([b"small"]),
    ]


def test_what_receivers_say_is_counted() -> None:
    reader = Reader(credit=3)
    block_of(message("a"), message("b"), message("c")).send(reader.link, reader.feed, 10)
    outcomes: tuple[DeliveryState, ...] = (Accepted(), Rejected(), Released())
    for arrival, outcome in zip(reader.taken(), outcomes, strict=True):
        reader.peer.settle(arrival, outcome)
    feed = reader.feed
    assert (feed.accepted, feed.rejected, feed.returned) == (1, 1, 1)


@pytest.mark.parametrize(
    "payload",
    [b"", b"\x00", b"\x00\x00\x00\x09abc", b"\xff\xff\xff\xff", b"\x00\x00\x00\x03abc"],
)
def test_damaged_records_are_refused_and_never_read_beyond(payload: bytes) -> None:
    reader = Reader(credit=3)
    block = Block(0)
    block.add(0, b"", 0, 1, payload)
    with pytest.raises(ValueError, match="record"):
        block.send(reader.link, reader.feed, 0)
    assert reader.taken() == []

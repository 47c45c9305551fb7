"""Any message through a stream: what comes out is what went in, and what the stream says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import peers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.message import (
    Data,
    Header,
    Properties,
    Sections,
    Value,
    decode_sections,
    encode_sections,
)
from cogwork.amqp.types import Symbol, Timestamp, ULong
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.stream.blocks import Block
from cogwork.dataplane.stream.feed import Feed
from cogwork.dataplane.stream.intake import Intake, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.dataplane.transport.outgoing import OutgoingLink

OWN = tuple(
    Symbol(f"x-opt-{name}")
    for name in ("offset", "time", "caught-up", "producer", "sequence", "snapshot")
)
PLACE = OWN[:2]

KEYS = st.sampled_from(
    [*OWN[:3], *(Symbol(name) for name in ("x-opt-", "x-opt-times", "x", "x-opt-partition"))]
) | st.text("abx-", min_size=1, max_size=300).map(Symbol)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 2**63).map(ULong)
    | st.text(max_size=20)
    | st.binary(max_size=300)
    | st.integers(-(2**40), 2**40).map(Timestamp),
    lambda values: st.lists(values, max_size=4),
    max_leaves=6,
)
PRODUCERS = st.none() | st.tuples(
    st.binary(min_size=1, max_size=64), st.integers(0, 2**63 - 1).map(ULong)
)
MESSAGES = st.builds(
    Sections,
    header=st.none() | st.builds(Header, durable=st.booleans(), priority=st.integers(0, 9)),
    delivery_annotations=st.none() | st.dictionaries(KEYS, VALUES, max_size=3),
    message_annotations=st.none() | st.dictionaries(KEYS, VALUES, max_size=12),
    properties=st.none() | st.builds(Properties, subject=st.none() | st.text(max_size=10)),
    body=st.binary(max_size=300).map(lambda data: Data([data])) | VALUES.map(Value),
)


class Through:
    """An intake, and a link that a block is sent on."""

    def __init__(self) -> None:
        self.core = Core()
        self.intake = Intake(self.core, self)
        self.intake.is_open = True
        self.entry = AddressEntry(self.core, "stream/a", CLOSEST_CODE)
        self.entry.add_outlet(self.intake)
        self.feed = Feed(self.core, self)
        self.record_batches: list[RecordBatch] = []
        self.publisher = peers.Peer(self.core)
        self.inlet = self.publisher.publisher(self.entry)
        self.receiver = peers.Peer(self.core)
        self.link = self.receiver.consumer(self, 1000)  # type: ignore[arg-type]  # all that it needs

    def add_consumer(self, link: OutgoingLink) -> None:
        link.feeder = self.feed

    def on_batch(self, feed: Feed) -> None:
        feed.woken.clear()

    def on_record_batches(self, record_batches: Sequence[RecordBatch]) -> None:
        self.record_batches += record_batches

    def carry(self, messages: list[bytes]) -> list[bytes]:
        """Send messages, and return what comes out."""
        self.publisher.send_run(self.inlet, messages)
        self.core.flush()
        block = Block(7)
        for record_batch in self.record_batches:
            block.add(
                99,
                record_batch.producer,
                record_batch.sequence,
                record_batch.count,
                record_batch.payload,
            )
        offset = 7
        while offset < block.next_offset:
            offset = block.send(self.link, self.feed, offset)
        self.core.flush()
        return [arrival.message for arrival in self.receiver.take()]


def kept(annotations: dict[Symbol | ULong, object] | None) -> dict[object, object]:
    return {key: value for key, value in (annotations or {}).items() if key not in OWN}


@settings(deadline=None)
@given(st.lists(st.tuples(MESSAGES, PRODUCERS), min_size=1, max_size=8))
@example([(Sections(body=Data([b""])), None)])
def test_what_comes_out_is_what_went_in(
    given_: list[tuple[Sections, tuple[bytes, int] | None]],
) -> None:
    through = Through()
    messages = []
    for sections, producer in given_:
        if producer is not None:
            own: dict[Symbol | ULong, object] = dict(zip(OWN[3:5], producer, strict=True))
            sections.message_annotations = {**(sections.message_annotations or {}), **own}
        messages.append(encode_sections(sections))
    found = through.carry(messages)
    assert len(found) == len(messages)
    for at, (data, (sections, producer)) in enumerate(zip(found, given_, strict=True)):
        out = decode_sections(data)
        sent = decode_sections(encode_sections(sections))
        assert out.delivery_annotations is None
        assert (out.header, out.properties, out.body) == (sent.header, sent.properties, sent.body)
        said = out.message_annotations or {}
        assert kept(said) == kept(sent.message_annotations)
        assert said[PLACE[0]] == 7 + at
        stamps = {key: said.get(key) for key in OWN[2:]}
        expected = dict(zip(OWN[3:5], producer, strict=True)) if producer else {}
        assert stamps == {key: expected.get(key) for key in OWN[2:]}


@settings(deadline=None)
@given(
    st.lists(
        st.binary(max_size=60)
        | st.tuples(MESSAGES.map(encode_sections), st.integers(0, 400), st.integers(0, 255)).map(
            lambda it: it[0][: it[1]] + bytes([it[2]]) + it[0][it[1] + 1 :]
        ),
        max_size=8,
    )
)
def test_bytes_that_are_no_message_do_no_harm(messages: list[bytes]) -> None:
    """What the intake takes the way out can send, and nothing else is kept."""
    through = Through()
    found = through.carry(messages) if messages else []
    assert len(found) + through.intake.refused == len(messages)
    for data in found:
        try:
            decode_sections(data)
        except ProtocolError:
            continue  # inside of a section, whose values nobody on the way looks at


@settings(deadline=None)
@given(st.binary(max_size=80), st.integers(1, 5))
def test_damaged_batches_do_no_harm(payload: bytes, count: int) -> None:
    through = Through()
    block = Block(0)
    block.add(0, b"", 0, count, payload)
    try:
        block.send(through.link, through.feed, 0)
    except ValueError:
        through.core.flush()
        assert through.receiver.take() == []

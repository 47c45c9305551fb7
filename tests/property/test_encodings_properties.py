"""Whatever legal encoding a peer chooses, all that a container heeds means the same.

Each property does one thing twice: with what the project itself encodes, and with the same encoded
anew at random, by `reencoding`, which knows the specification's tables alone.
"""

from __future__ import annotations

import math
import time
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import peers
from hypothesis import given, settings
from hypothesis import strategies as st
from reencoding import Reencoder
from wires import Broker
from wires.peer import Peer as Stranger

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError
from cogwork.amqp.frames import FrameReader, encode_frame
from cogwork.amqp.message import (
    Data,
    Header,
    Properties,
    Sections,
    Value,
    decode_sections,
    encode_sections,
)
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Role,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import (
    Decimal32,
    Decimal64,
    Decimal128,
    Float32,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from cogwork.container.vhost.selection import selection
from cogwork.dataplane.addresses.entry import BALANCED_CODE, CLOSEST_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.encoding import composites
from cogwork.dataplane.encoding.numbers import rounded
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.message.sections import inspect
from cogwork.dataplane.queue.store import Store
from cogwork.dataplane.stream.intake import Intake
from cogwork.dataplane.transport.scan import fields_of
from cogwork.plugin.dead_letters import as_moved, dead_letter, origin_of, revived

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from cogwork.amqp.performatives import Performative
    from cogwork.dataplane.stream.intake import RecordBatch
    from cogwork.dataplane.transport.outgoing import OutgoingLink

thorough = settings(max_examples=4 * settings().max_examples, deadline=None)

DELAY, TIME = Symbol("x-opt-delivery-delay"), Symbol("x-opt-delivery-time")
PRODUCER, SEQUENCE, SNAPSHOT = map(Symbol, ("x-opt-producer", "x-opt-sequence", "x-opt-snapshot"))
DEAD_LETTER_ID = Symbol("x-opt-dead-letter-id")

RANDOMS = st.randoms(use_true_random=False)
HOUR_MS = 3_600_000

DELAYS = st.sampled_from([0, 1000, HOUR_MS]).flatmap(
    lambda ms: st.sampled_from(
        [UInt(ms), ULong(ms), Int(ms), ms, float(ms), Float32(ms), Decimal64(ms), Decimal128(ms)]
    )
) | st.sampled_from([UByte(200), UShort(1000), Short(1000), -5, None, "1000", True, b"1"])
TIMES = st.sampled_from([HOUR_MS, 24 * HOUR_MS]).map(
    lambda ms: Timestamp(int(time.time() * 1000) + ms)
) | st.sampled_from([Timestamp(0), 0.0, Symbol("soon"), uuid.UUID(int=1)])
MARKS = st.fixed_dictionaries(
    {},
    optional={
        Symbol("x-opt-moved"): st.just(True),
        Symbol("x-opt-dead-letter-source"): st.sampled_from(["queue/z", Symbol("queue/z")]),
        Symbol("x-opt-dead-letter-reason"): st.sampled_from(["maximum-length", "expired"]),
        Symbol("x-opt-dead-letter-count"): st.sampled_from([UInt(1), UInt(300)]),
        Symbol("x-other"): st.sampled_from([1, "a", [1, {"b": None}]]),
        DELAY: DELAYS,
        TIME: TIMES,
    },
)
HEADERS = st.none() | st.builds(
    Header,
    durable=st.booleans(),
    priority=st.sampled_from([0, 3, 4, 9]),
    ttl=st.sampled_from([None, 60_000, 3 * HOUR_MS]),
    first_acquirer=st.booleans(),
    delivery_count=st.sampled_from([0, 1, 300]),
)
IDS = st.sampled_from([None, 0, 7, 300, "7", b"7", "x" * 300, uuid.UUID(int=7)])
PROPERTIES = st.none() | st.builds(
    Properties,
    message_id=IDS,
    user_id=st.sampled_from([None, b"me"]),
    to=st.sampled_from([None, "one/a", "one/b", "all/" + "c" * 300]),
    subject=st.sampled_from([None, "s"]),
    reply_to=st.sampled_from([None, "one/r"]),
    correlation_id=IDS,
    content_type=st.sampled_from([None, "text/plain"]),
    group_id=st.sampled_from([None, "", "g", "h" * 300]),
    group_sequence=st.sampled_from([None, 0, 5, 70_000]),
)
APPLICATION = st.none() | st.fixed_dictionaries(
    {}, optional={"a": st.sampled_from([0, 1, 1.5, "b", True, UInt(3)]), "n" * 300: st.just("c")}
)
MESSAGES = st.builds(
    Sections,
    header=HEADERS,
    delivery_annotations=st.sampled_from([None, {DEAD_LETTER_ID: bytes(16)}, {Symbol("x"): 1}]),
    message_annotations=MARKS,
    properties=PROPERTIES,
    application_properties=APPLICATION,
    body=st.sampled_from([Data([b"b"]), Data([b"b" * 300]), Value("v"), Value(5)]),
)


SELECTORS = (
    "JMSPriority = 4",
    "JMSDeliveryMode = 'PERSISTENT'",
    "JMSType = 's'",
    "JMSCorrelationID = '7'",
    "JMSDestination LIKE 'one/%'",
    "JMSXGroupID = 'g' OR JMSXGroupSeq > 4",
    "a = 1",
)


# --- what is read of a message ---


@thorough
@given(sections=MESSAGES, random=RANDOMS)
def test_a_message_says_the_same(sections: Sections, random: Random) -> None:
    usual = encode_sections(sections)
    again = Reencoder(random).message(usual)
    assert decode_sections(again) == decode_sections(usual)
    one, other = Message.decode(usual), Message.decode(again)
    assert (one.body, one.annotations, one.properties) == (
        other.body,
        other.annotations,
        other.properties,
    )
    for text in SELECTORS:
        matches = selection(text)
        assert matches(again) == matches(usual), text


@thorough
@given(sections=MESSAGES, random=RANDOMS)
def test_the_finders_find_the_same(sections: Sections, random: Random) -> None:
    usual = encode_sections(sections)
    expected, found = dict(inspect(usual)), dict(inspect(Reencoder(random).message(usual)))
    for each in (expected, found):  # but for the header's size
        if isinstance(each["header"], tuple):
            each["header"] = each["header"][:-1]
    assert found == expected


@thorough
@given(sections=MESSAGES, random=RANDOMS)
def test_a_dead_letter_says_the_same(sections: Sections, random: Random) -> None:
    usual = encode_sections(sections)
    again = Reencoder(random).message(usual)
    assert origin_of(again) == origin_of(usual)
    for made in (
        lambda message: dead_letter(
            message, "queue/q", "expired", None, 2, died_ms=1, letter=b"l" * 16
        ),
        revived,
        as_moved,
    ):
        assert decode_sections(made(again)) == decode_sections(made(usual))


NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(ULong),
    st.integers(-100, 100).map(Int),
    st.floats(),
    st.floats(width=32).map(Float32),
    st.builds(
        lambda kind, coefficient, exponent: kind(Decimal(coefficient).scaleb(exponent)),
        st.sampled_from([Decimal32, Decimal64, Decimal128]),
        st.integers(-(10**7) + 1, 10**7 - 1),
        st.integers(-20, 20),
    ),
    st.sampled_from([Decimal128("9223372036854775807"), Decimal64("NaN"), Decimal32("-Infinity")]),
)


@thorough
@given(number=NUMBERS)
def test_a_number_is_read_as_the_nearest_whole_one(number: Any) -> None:
    found = rounded(codec.encode(number))
    if math.isnan(number) or abs(number) > 2**63:
        assert found is None
    elif found is None:
        assert abs(number) >= 2**63 - 1
    else:
        assert abs(Decimal(found) - Decimal(number)) <= Decimal("0.5")


# --- a queue ---


class Client(peers.Peer):
    """A client that encodes all it says by `encoder`; as the project does where there is none."""

    encoder: Reencoder | None = None

    def say(self, performative: Performative, payload: bytes = b"") -> None:
        body = encode_performative(performative)
        if self.encoder is not None:
            body = self.encoder.performative(body)
        self.wire.feed(encode_frame(0, body + payload))
        self.hear()


class Queue:
    """A store with groups, deduplication and delays, its publisher and a consumer."""

    def __init__(self, encoder: Reencoder | None, **options: Any) -> None:
        self.core = Core()
        self.store = Store(self.core, 1, **options)
        self.store.handler = self
        self.store.keeps_dead = True
        self.entry = AddressEntry(self.core, "queue/a", BALANCED_CODE)
        self.entry.add_outlet(self.store)
        self.client = Client(self.core)
        self.client.encoder = encoder
        self.encoder = encoder
        self.link = self.client.publisher(self.entry)
        self.dead: list[str] = []
        self.now_s = time.monotonic()
        self.sent = 0

    def on_batch(self, store: Store) -> None:
        dead_letters = store.take_dead(1000)
        self.dead += [reason for _, reason, *_ in dead_letters]
        store.moved([number for number, *_ in dead_letters])

    def send(self, message: bytes) -> None:
        if self.encoder is not None:
            message = self.encoder.message(message)
        transfer = Transfer(
            handle=self.link.handle,
            delivery_id=self.sent,
            delivery_tag=b"%d" % self.sent,
            settled=False,
        )
        self.sent += 1
        self.client.say(transfer, message)
        self.core.flush()

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.store.tick(self.now_s)
        self.core.flush()

    def consume(self, link: OutgoingLink) -> list[object]:
        """Take what comes; give some back changed, accepts the others."""
        seen: list[object] = []
        for _ in range(100):
            arrivals = self.client.take()
            if not arrivals:
                break
            for arrival in arrivals:
                message = decode_sections(arrival.message)
                header = message.header or Header()
                seen.append(
                    (
                        message.body,
                        message.message_annotations,
                        header.priority,
                        header.durable,
                        header.delivery_count,
                        header.ttl is None,
                    )
                )
                again = Modified(
                    delivery_failed=True,
                    message_annotations={Symbol("x-again"): 1, Symbol("x-other"): "changed"},
                )
                is_new = Symbol("x-again") not in (message.message_annotations or {})
                self.client.settle(arrival, again if is_new else Accepted())
            self.core.flush()
        return seen


def counted(queue: Queue) -> dict[str, object]:
    """Return what the store counts, but for octets."""
    sizes = ("bytes", "memory-bytes")
    return {name: count for name, count in queue.store.counts().items() if name not in sizes}


def account(queue: Queue, messages: list[bytes]) -> list[object]:
    """Send messages, lets time pass, and tell all that can be seen of it."""
    told: list[object] = []
    for each in messages:
        queue.send(each)
    told += [counted(queue), queue.client.outcomes()]
    link = queue.client.consumer(queue.store, 100)
    for seconds in (0.0, 2.0, 61.0, HOUR_MS / 1000 + 1, 25 * HOUR_MS / 1000):
        queue.pass_time(seconds)
        told += [queue.consume(link), counted(queue)]
    return [*told, sorted(queue.dead)]


@thorough
@given(
    sections=st.lists(MESSAGES, min_size=1, max_size=6),
    is_ordered=st.booleans(),
    deduplicates=st.booleans(),
    random=RANDOMS,
)
def test_a_queue_does_the_same(
    sections: list[Sections], is_ordered: bool, deduplicates: bool, random: Random
) -> None:
    for number, each in enumerate(sections):
        each.body = Data([b"%d" % number])
        each.delivery_annotations = None
    messages = [encode_sections(each) for each in sections]
    options = {
        "is_ordered": is_ordered,
        "deduplication_window_s": 1e6 if deduplicates else 0.0,
    }
    usual = account(Queue(None, **options), messages)
    assert account(Queue(Reencoder(random), **options), messages) == usual


@given(random=RANDOMS)
def test_a_dead_letter_is_known_again(random: Random) -> None:
    bare = encode_sections(Sections(properties=Properties(subject="s"), body=Data([b"b"])))
    front = [
        encode_sections(Sections(header=Header(durable=True))),
        encode_sections(Sections(delivery_annotations={DEAD_LETTER_ID: b"l" * 16})),
        encode_sections(Sections(message_annotations={Symbol("x-opt-dead-letter-source"): "q"})),
    ]
    queue = Queue(None)
    for _ in range(3):
        queue.send(b"".join(Reencoder(random).message(each) for each in front) + bare)
    assert queue.store.counts()["duplicates"] == 2
    assert queue.store.depth == 1


# --- a stream ---


class Stream:
    """An intake behind an address, with one publisher."""

    def __init__(self) -> None:
        self.core = Core()
        self.intake = Intake(self.core, self)
        self.intake.is_open = True
        self.entry = AddressEntry(self.core, "stream/a", CLOSEST_CODE)
        self.entry.add_outlet(self.intake)
        self.intake.inlet = self.entry
        self.record_batches: list[RecordBatch] = []
        self.client = Client(self.core)
        self.link = self.client.publisher(self.entry)

    def on_record_batches(self, record_batches: Sequence[RecordBatch]) -> None:
        self.record_batches += record_batches

    def account(self, message: bytes) -> object:
        self.client.send(self.link, message)
        self.core.flush()
        outcomes = list(self.client.outcomes().values())
        if not self.record_batches:
            return outcomes
        (record_batch,) = self.record_batches
        payload = record_batch.payload if record_batch.is_snapshot else record_batch.payload[4:]
        kept = decode_sections(payload)
        return (
            outcomes,
            (
                record_batch.producer,
                record_batch.sequence,
                record_batch.is_snapshot,
                record_batch.snapshot,
            ),
            kept,
        )


STREAM_MARKS = st.fixed_dictionaries(
    {},
    optional={
        PRODUCER: st.sampled_from(
            [b"p", "p", Symbol("p"), b"p" * 64, b"p" * 65, uuid.UUID(int=1), 5]
        ),
        SEQUENCE: st.sampled_from(
            [ULong(0), ULong(5), ULong(300), UInt(5), Int(5), 5, -1, 2.0, "5"]
        ),
        SNAPSHOT: st.sampled_from([ULong(5), ULong(2**40), b"5"]),
        Symbol("x-opt-offset"): st.just(ULong(3)),
        Symbol("x-opt-time"): st.just(Timestamp(3)),
        Symbol("x-opt-caught-up"): st.just(ULong(3)),
        Symbol("x-own"): st.sampled_from([1, "a" * 300]),
    },
)


@thorough
@given(marks=STREAM_MARKS, header=HEADERS, properties=PROPERTIES, random=RANDOMS)
def test_a_stream_does_the_same(
    marks: dict[Any, Any], header: Header | None, properties: Properties | None, random: Random
) -> None:
    usual = encode_sections(
        Sections(
            header=header,
            delivery_annotations={Symbol("x"): 1},
            message_annotations=marks,
            properties=properties,
            body=Data([b"b"]),
        )
    )
    assert Stream().account(Reencoder(random).message(usual)) == Stream().account(usual)


# --- performatives ---

STATES = st.sampled_from(
    [
        None,
        Accepted(),
        Released(),
        Rejected(error=AmqpError(condition=Symbol("amqp:not-found"), description="no")),
        Modified(delivery_failed=True, message_annotations={Symbol("x-opt"): [1, "a", None]}),
        Received(section_number=3, section_offset=2**40),
    ]
)
SMALL = st.sampled_from([0, 1, 255, 256, 2**31])
TERMINI = st.builds(
    Source,
    address=st.sampled_from([None, "one/a"]),
    timeout=SMALL,
    dynamic=st.booleans(),
    default_outcome=st.sampled_from([None, Released(), Modified()]),
    outcomes=st.sampled_from([(), (Symbol("amqp:accepted:list"), Symbol("amqp:released:list"))]),
    filter=st.sampled_from([None, {Symbol("f"): {"a": [1, None]}}]),
)
PERFORMATIVES = st.one_of(
    st.builds(
        Transfer,
        handle=SMALL,
        delivery_id=st.none() | SMALL,
        delivery_tag=st.none() | st.binary(max_size=32),
        message_format=st.none() | SMALL,
        settled=st.none() | st.booleans(),
        more=st.booleans(),
        state=STATES,
        aborted=st.booleans(),
    ),
    st.builds(
        Flow,
        next_incoming_id=st.none() | SMALL,
        incoming_window=SMALL,
        next_outgoing_id=SMALL,
        outgoing_window=SMALL,
        handle=st.none() | SMALL,
        delivery_count=st.none() | SMALL,
        link_credit=st.none() | SMALL,
        drain=st.booleans(),
        echo=st.booleans(),
        properties=st.sampled_from([None, {Symbol("a"): 1}]),
    ),
    st.builds(
        Disposition,
        role=st.sampled_from(Role),
        first=SMALL,
        last=st.none() | SMALL,
        settled=st.booleans(),
        state=STATES,
    ),
    st.builds(
        Attach,
        name=st.sampled_from(["a", "n" * 300]),
        handle=SMALL,
        role=st.sampled_from(Role),
        source=st.none() | TERMINI,
        target=st.sampled_from([None, Target(address="one/a")]),
        unsettled=st.sampled_from([None, {b"t": None, b"u" * 20: Accepted()}]),
        initial_delivery_count=st.none() | SMALL,
    ),
    st.builds(
        Open,
        container_id=st.sampled_from(["", "c" * 300]),
        hostname=st.sampled_from([None, "h"]),
        max_frame_size=SMALL,
        idle_time_out=st.none() | SMALL,
        offered_capabilities=st.sampled_from([(), (Symbol("A"),), (Symbol("A"), Symbol("B"))]),
        properties=st.sampled_from([None, {Symbol("product"): "p"}]),
    ),
    st.builds(Begin, next_outgoing_id=SMALL, incoming_window=SMALL, outgoing_window=SMALL),
    st.builds(Detach, handle=SMALL, closed=st.booleans()),
    st.sampled_from([End(), Close(error=AmqpError(condition=Symbol("amqp:internal-error")))]),
)


@thorough
@given(performative=PERFORMATIVES, random=RANDOMS)
def test_a_performative_says_the_same(performative: Performative, random: Random) -> None:
    usual = encode_performative(performative)
    again = Reencoder(random).performative(usual)
    assert decode_performative(again)[0] == performative
    assert decode_performative(again, 0, composites.decode)[0] == performative
    expected, found = fields_of(usual + b"payload"), fields_of(again + b"payload")
    if isinstance(expected, dict) and isinstance(found, dict):
        for each in (expected, found):  # a state is as it came
            each["state"] = bool(each.get("state"))
    assert found == expected


class AnyWay(Stranger):
    """A peer that encodes each frame's performative, and a whole message behind it, anew."""

    encoder: Reencoder | None = None

    def feed(self, data: bytes) -> None:
        if self.encoder is None or data.startswith(b"AMQP"):
            super().feed(data)
            return
        for frame in FrameReader(1 << 20).feed(data):
            value, at = codec.decode(frame.body, 0)
            body = self.encoder.value(value) + self.encoder.message(frame.body[at:])
            super().feed(encode_frame(frame.channel, body))


def talk(encoder: Reencoder | None, sections: list[Sections], answers: list[Any]) -> list[object]:
    """Have messages go by their own addresses from a peer to another, and tell what both hear."""
    broker = Broker()
    near, far = AnyWay(broker), AnyWay(broker)
    near.encoder = far.encoder = encoder
    publisher = near.greet().publisher(None)
    far.greet()
    consumers = [far.consumer(each, 50) for each in ("one/a", "one/b", "all/" + "c" * 300)]
    for each in sections:
        publisher.send(encode_sections(each), settled=False)
    heard = [
        (decode_sections(arrival.body), arrival.settled)
        for consumer in consumers
        for arrival in consumer.arrivals
    ]
    for consumer in consumers:
        for arrival, state in zip(consumer.arrivals, answers, strict=False):
            consumer.channel.settle(arrival.id, state=state)
    return [heard, publisher.outcomes, [each.link_credit for each in publisher.flows]]


@given(
    sections=st.lists(MESSAGES, min_size=1, max_size=4),
    answers=st.lists(STATES, min_size=4, max_size=4),
    random=RANDOMS,
)
def test_a_conversation_goes_the_same_way(
    sections: list[Sections], answers: list[Any], random: Random
) -> None:
    usual = talk(None, sections, answers)
    assert talk(Reencoder(random), sections, answers) == usual

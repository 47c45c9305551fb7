"""What a message says and nobody understands: it is rejected, and the error says why."""

from __future__ import annotations

import time
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING

import peers
import pytest

from cogwork.amqp import codec
from cogwork.amqp.errors import Condition
from cogwork.amqp.message import Data, Sections, encode_sections
from cogwork.amqp.outcomes import Accepted, Rejected
from cogwork.amqp.types import (
    Array,
    Char,
    Decimal32,
    Described,
    Float32,
    Short,
    Symbol,
    Timestamp,
    UInt,
    ULong,
)
from cogwork.dataplane.addresses.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.store import Store

if TYPE_CHECKING:
    from typing import Any

BODY = encode_sections(Sections(body=Data([b"b"])))
DELAY, TIME = "x-opt-delivery-delay", "x-opt-delivery-time"


class Desk:
    """A store with one publisher."""

    def __init__(self, **options: Any) -> None:
        self.core = Core()
        self.store = Store(self.core, 1, **options)
        self.entry = AddressEntry(self.core, "queue/a", BALANCED_CODE)
        self.entry.add_outlet(self.store)
        self.client = peers.Peer(self.core)
        self.link = self.client.publisher(self.entry)

    def send(self, message: bytes) -> object:
        """Send a message; return its outcome."""
        delivery_id = self.client.send(self.link, message)
        self.core.flush()
        return self.client.outcomes()[delivery_id]

    def refusal(self, message: bytes) -> str:
        """Send a message that is rejected, and not kept; return why."""
        outcome = self.send(message)
        assert isinstance(outcome, Rejected)
        assert outcome.error is not None
        assert outcome.error.condition == Condition.INVALID_FIELD
        assert self.store.depth == 0
        assert self.store.counts()["malformed"] == 1
        return str(outcome.error.description)


def annotated(name: str, value: object) -> bytes:
    return encode_sections(Sections(message_annotations={Symbol(name): value}, body=Data([b"b"])))


def section(code: int, *fields: object) -> bytes:
    return codec.encode(Described(ULong(code), list(fields))) + BODY


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("3600000", "a string"),
        (Symbol("3600000"), "a symbol"),
        (b"1", "a binary"),
        (True, "a boolean"),
        (Char("1"), "a char"),
        (uuid.UUID(int=1), "a uuid"),
        ([1], "a list"),
        ({"ms": 1}, "a map"),
        (Array([1], int), "an array"),
        (Described(Symbol("ms"), 1), "a described value"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", [DELAY, TIME])
def test_a_delay_of_another_type_is_rejected_and_named(
    name: str, value: object, found: str
) -> None:
    text = Desk().refusal(annotated(name, value))
    assert text.startswith(f"{name} is {found} (expected ")


def test_a_time_is_no_delay() -> None:
    text = Desk().refusal(annotated(DELAY, Timestamp(5)))
    assert text.startswith(f"{DELAY} is a timestamp (expected milliseconds")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, ULong(2**63)], ids=str)
@pytest.mark.parametrize("name", [DELAY, TIME])
def test_a_delay_beyond_all_numbers_is_out_of_range(name: str, value: object) -> None:
    assert Desk().refusal(annotated(name, value)).startswith(f"{name} is out of range (expected ")


HOUR_MS = 3_600_000
NUMBERS: list[object] = [
    HOUR_MS,
    UInt(HOUR_MS),
    HOUR_MS + 0.4,
    Float32(HOUR_MS),
    Decimal(HOUR_MS) + Decimal("0.4"),
    Decimal32(HOUR_MS),
]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_a_delay_is_any_number(value: object) -> None:
    desk = Desk()
    assert desk.send(annotated(DELAY, value)) == Accepted()
    assert desk.store.counts()["delayed"] == 1
    desk.store.tick(time.monotonic() + HOUR_MS / 1000 - 60)
    assert desk.store.counts()["delayed"] == 1
    desk.store.tick(time.monotonic() + HOUR_MS / 1000 + 1)
    assert desk.store.counts()["ready"] == 1


@pytest.mark.parametrize("value", [0, -5, -5.0, Short(-5), None], ids=str)
@pytest.mark.parametrize("name", [DELAY, TIME])
def test_a_delay_that_is_over_or_absent_is_none(name: str, value: object) -> None:
    desk = Desk()
    assert desk.send(annotated(name, value)) == Accepted()
    assert desk.store.counts()["ready"] == 1


def test_a_queue_without_delays_does_not_look_at_them() -> None:
    desk = Desk(delays=False)
    assert desk.send(annotated(DELAY, "soon")) == Accepted()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (["yes"], "header.durable is a string (expected a boolean)"),
        ([None, UInt(4)], "header.priority is a uint (expected a ubyte)"),
        ([None, None, 60_000], "header.ttl is a long (expected a uint: milliseconds)"),
        ([None, None, None, 1], "header.first-acquirer is a long (expected a boolean)"),
        ([None, None, None, None, "1"], "header.delivery-count is a string (expected a uint)"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_field_of_the_header_is_named(fields: list[object], text: str) -> None:
    assert Desk().refusal(section(0x70, *fields)) == text


def test_a_message_id_of_another_type_is_named_where_ids_are_remembered() -> None:
    message = section(0x73, 7)
    text = "properties.message-id is a long (expected a ulong, a uuid, a binary or a string)"
    assert Desk(deduplication_window_s=60.0).refusal(message) == text
    assert Desk().send(message) == Accepted()


def test_a_group_id_of_another_type_is_named_where_groups_are_ordered() -> None:
    message = section(0x73, *[None] * 10, b"g")
    text = "properties.group-id is a binary (expected a string)"
    assert Desk(is_ordered=True).refusal(message) == text
    assert Desk().send(message) == Accepted()

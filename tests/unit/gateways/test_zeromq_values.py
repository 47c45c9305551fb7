"""JSON and MessagePack carry what AMQP has, and nothing that comes in is believed."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from cogwork.amqp.types import Described, Symbol, Timestamp, UInt
from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.codec import JSON, MESSAGEPACK, codec_for, codec_of
from cogwork.gateways.zeromq.errors import Fault
from cogwork.gateways.zeromq.frames import MAGIC, parse

if TYPE_CHECKING:
    from collections.abc import Callable

SCALARS = (
    some.none()
    | some.booleans()
    | some.integers(-(2**63), 2**63 - 1)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(max_size=20)
    | some.binary(max_size=20)
    | some.uuids()
    | some.decimals(allow_nan=False, allow_infinity=False, places=3)
    | some.datetimes(timezones=some.just(UTC))
)
VALUES = some.recursive(
    SCALARS,
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.dictionaries(some.text(max_size=6) | some.sampled_from(["$bytes", "$$"]), inner)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_both_codecs_give_back_what_they_were_given(value: object) -> None:
    assert JSON.decode(JSON.encode(value)) == value
    assert MESSAGEPACK.decode(MESSAGEPACK.encode(value)) == value


@given(VALUES)
def test_a_header_tells_its_codec(value: object) -> None:
    header = {"value": value}
    for codec in (JSON, MESSAGEPACK):
        assert codec_of(codec.encode(header)) is codec


def test_types_of_amqp_become_those_that_everybody_has() -> None:
    value = {
        Symbol("key"): Symbol("word"),
        "count": UInt(7),
        "time": Timestamp(1_000),
        "described": Described(Symbol("x"), [Symbol("y"), b"z"]),
        5: True,
    }
    assert msgspec.json.decode(JSON.encode(value)) == {
        "key": "word",
        "count": 7,
        "time": {"$datetime": "1970-01-01T00:00:01Z"},
        "described": ["y", {"$bytes": "eg=="}],
        "5": True,
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1",
        b"\xff\xfe",
        b'{"a": 1, "a": }',
        b'{"$uuid": "no"}',
        b'{"$uuid": 7}',
        b'{"$decimal": "one"}',
        b'{"$datetime": "today"}',
        b'{"$exec": "rm"}',
        b"1" * 40,
        b"[" * 10_000,
        b"[" * 33 + b"]" * 33,
        b"NaN",
    ],
)
def test_json_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Fault):
        JSON.decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x92\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 10_000 + b"\xc0",
        b"\x91" * 33 + b"\xc0",
        b"\x81\x01\x02",
        b"\xd4\x07\x00",
        b"\xd4\x01\x00",
        b"\xd4\x02x",
        b"\xd6\xff\x00\x00\x00",
    ],
)
def test_messagepack_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Fault):
        MESSAGEPACK.decode(data)


def test_random_frames_are_messages_or_faults() -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    made = 0
    for _ in range(3000):
        parts = [chance.randbytes(chance.randrange(12)) for _ in range(chance.randrange(7))]
        if chance.random() < 0.7:
            parts[:1] = [MAGIC]
        if chance.random() < 0.5 and len(parts) > 3:
            parts[3] = chance.choice((b"{}", b"\x80", b'{"id": [1]}', b'{"to": 1}', b"[]"))
        try:
            frames = parse(parts)
        except Fault:
            continue
        made += 1
        readers: tuple[Callable[[Any], object], ...]
        readers = (lambda f: f.id, lambda f: f.text("to"), lambda f: f.seconds("t", 1.0))
        for read in readers:
            try:
                read(frames)
            except Fault:
                continue
    assert made > 100, f"seed {seed}"


def test_content_types_name_codecs() -> None:
    assert codec_for("application/json; charset=utf-8") is JSON
    assert codec_for("application/geo+json") is JSON
    assert codec_for("application/msgpack") is MESSAGEPACK
    assert codec_for("text/plain") is None
    assert codec_for(None) is None


def test_what_comes_in_can_be_sent_on() -> None:
    value = {
        "when": datetime(2026, 1, 1, tzinfo=UTC),
        "id": UUID(int=7),
        "price": Decimal("1.50"),
        "raw": b"\0",
        "large": 2**64 - 1,
        "small": -(2**63),
    }
    message = Message.decode(Message.value(JSON.decode(JSON.encode(value))).encode())
    assert message.body == value


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"])
def test_a_time_that_utc_does_not_have_is_refused_by_name(text: str) -> None:
    with pytest.raises(Fault, match="a time from the year 1 to 9999, in UTC, is expected"):
        JSON.decode(b'{"$datetime": "%s"}' % text.encode())
    for codec in (JSON, MESSAGEPACK):
        with pytest.raises(ValueError, match="a time from the year 1 to 9999"):
            codec.encode(datetime.fromisoformat(text))


@pytest.mark.parametrize("timestamp_ms", [2**62, -(2**62), 253_402_300_800_000])
def test_a_timestamp_that_is_in_no_year_cannot_be_written(timestamp_ms: int) -> None:
    for codec in (JSON, MESSAGEPACK):
        with pytest.raises(ValueError, match="in no year from 1 to 9999"):
            codec.encode(Timestamp(timestamp_ms))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**70])
def test_an_id_is_an_integer_that_every_codec_can_write(number: int) -> None:
    frames = parse([MAGIC, b"CALL", b"s", b'{"id": %d}' % number])
    with pytest.raises(Fault, match="id: an integer of at most 64 bits"):
        frames.need_id()


@pytest.mark.parametrize("size", [65, 1_000_000])
def test_a_decimal_that_is_longer_than_any_is_not_looked_at(size: int) -> None:
    digits = "9" * size
    extension = msgspec.msgpack.encode(msgspec.msgpack.Ext(2, digits.encode()))
    for codec, data in ((JSON, f'{{"$decimal":"{digits}"}}'.encode()), (MESSAGEPACK, extension)):
        with pytest.raises(Fault, match=f"'9{{20}}…' of {size} characters; at most 64 expected"):
            codec.decode(data)

"""The sections of a message."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from cogwork.amqp.codec import encode
from cogwork.amqp.errors import EncodeError, ProtocolError
from cogwork.amqp.message import (
    Body,
    Data,
    Header,
    Properties,
    Sections,
    Sequence,
    Value,
    decode_sections,
    encode_sections,
)
from cogwork.amqp.types import Described, Symbol, ULong

FULL = Sections(
    header=Header(durable=True, priority=9, ttl=1000, first_acquirer=True, delivery_count=2),
    delivery_annotations={Symbol("d"): 1},
    message_annotations={Symbol("m"): [1], ULong(5): None},
    properties=Properties(
        message_id=7,
        user_id=b"u",
        to="queue/a",
        subject="s",
        reply_to="r",
        correlation_id=uuid.UUID(int=5),
        content_type=Symbol("text/plain"),
        content_encoding=Symbol("gzip"),
        absolute_expiry_time=datetime(2030, 1, 1, tzinfo=UTC),
        creation_time=datetime(2029, 1, 1, tzinfo=UTC),
        group_id="g",
        group_sequence=3,
        reply_to_group_id="rg",
    ),
    application_properties={"a": 1, "b": "two", "c": 3.0},
    body=Value({"any": ["value"]}),
    footer={Symbol("f"): b"sum"},
)


def test_every_section_survives() -> None:
    assert decode_sections(encode_sections(FULL)) == FULL


@pytest.mark.parametrize(
    "body",
    [
        None,
        Data([b""]),
        Data([b"one", b"two"]),
        Sequence([[1, 2], []]),
        Value(None),
        Value("text"),
    ],
)
def test_every_kind_of_body_survives(body: Body | None) -> None:
    sections = Sections(body=body, footer={Symbol("f"): 1})
    assert decode_sections(encode_sections(sections)) == sections


def test_a_value_in_a_data_section_is_the_shortest_message() -> None:
    assert encode_sections(Sections(body=Data([b"x"]))) == bytes.fromhex("00 5375 a0 01 78")


def test_annotations_take_plain_strings_as_names() -> None:
    sections = decode_sections(
        encode_sections(Sections(message_annotations=cast("Any", {"x-opt-a": 1})))
    )
    assert sections.message_annotations == {Symbol("x-opt-a"): 1}


def section(code: int, value: object) -> bytes:
    return encode(Described(ULong(code), value))


def test_symbolic_descriptors_mean_the_same() -> None:
    data = encode(Described(Symbol("amqp:amqp-value:*"), 5))
    assert decode_sections(data) == Sections(body=Value(5))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x40", "a message section is expected, not None"),
        (section(0x79, 1), "a message section is expected"),
        (section(0x10, ["a"]), "a message section is expected"),
        (section(0x73, []) + section(0x70, []), "section header is out of order"),
        (section(0x70, []) * 2, "section header is out of order"),
        (section(0x77, 1) * 2, "section body is out of order"),
        (section(0x75, b"") + section(0x76, []), "section body is out of order"),
        (section(0x78, {}) + section(0x77, 1), "section body is out of order"),
        (section(0x75, "text"), "cannot hold str"),
        (section(0x76, {}), "cannot hold dict"),
        (section(0x74, []), "application_properties is a map, not list"),
        (section(0x74, {1: 1}), "application_properties cannot have the key 1"),
        (section(0x72, {1: 1}), "message_annotations cannot have the key 1"),
        (section(0x70, [1]), "header.durable: boolean is expected"),
        (section(0x73, [5]), "properties.message-id: message-id is expected, not int 5"),
        (section(0x77, 1)[:-1], "long takes"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_sections(data)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (Sections(application_properties=cast("Any", {1: 1})), "key is a str, not 1"),
        (Sections(message_annotations=cast("Any", {1.5: 1})), "key is a symbol, not 1.5"),
        (Sections(properties=Properties(message_id=-1)), "properties.message-id: ULong holds"),
        (Sections(header=Header(priority=256)), "header.priority: 0 to 255 is expected"),
        (Sections(body=Value(object())), "no type for object"),
    ],
)
def test_what_fits_no_message_is_refused(sections: Sections, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        encode_sections(sections)


def test_sections_of_a_body_cost_the_same_however_many_there_are() -> None:
    """Where each was put into a new list of all, this took ten times as long."""
    began_s = time.process_time()
    body = decode_sections(b"\x00\x53\x75\xa0\x00" * 120_000).body
    assert isinstance(body, Data)
    assert len(body.parts) == 120_000
    assert time.process_time() - began_s < 3

"""`Message`, as applications use it."""

from __future__ import annotations

import gc
import uuid
import weakref
from datetime import UTC, datetime
from typing import Any

import pytest

from cogwork.amqp.codec import encode
from cogwork.amqp.errors import DecodeError, EncodeError, ProtocolError
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.message.sections import inspect


def test_a_message_arrives_as_it_was_sent() -> None:
    sent = Message(
        {"delay": 5},
        subject="flights.JFK",
        to="topic/flights",
        message_id=uuid.UUID(int=1),
        correlation_id=7,
        content_type="application/json",
        creation_time=datetime(2013, 1, 1, tzinfo=UTC),
        group_sequence=3,
        properties={"carrier": "AA"},
        annotations={"x-opt-a": 1},
        ttl_s=1.5,
        durable=True,
        priority=9,
    )
    got = Message.decode(sent.encode())
    assert got.body == {"delay": 5}
    assert (got.subject, got.to) == ("flights.JFK", "topic/flights")
    assert (got.message_id, got.correlation_id) == (uuid.UUID(int=1), 7)
    assert got.content_type == "application/json"
    assert got.creation_time == datetime(2013, 1, 1, tzinfo=UTC)
    assert got.group_sequence == 3
    assert got.properties == {"carrier": "AA"}
    assert got.annotations == {Symbol("x-opt-a"): 1}
    assert (got.ttl_s, got.durable, got.priority) == (1.5, True, 9)
    assert (got.reply_to, got.user_id, got.delivery_count) == (None, None, 0)


@pytest.mark.parametrize(
    ("message", "body", "kind", "sections"),
    [
        (Message(), None, "value", [None]),
        (Message("text"), "text", "value", ["text"]),
        (Message([1, 2]), [1, 2], "value", [[1, 2]]),
        (Message(b"raw"), b"raw", "data", [b"raw"]),
        (Message(bytearray(b"raw")), b"raw", "data", [b"raw"]),
        (Message.data(b"a", b"b"), b"ab", "data", [b"a", b"b"]),
        (Message.sequence([1], [2, 3]), [1, 2, 3], "sequence", [[1], [2, 3]]),
    ],
)
def test_each_kind_of_body(
    message: Message, body: object, kind: str, sections: list[object]
) -> None:
    for one in (message, Message.decode(message.encode())):
        assert one.body == body
        assert one.body_type == kind
        assert one.body_sections == sections


def test_a_message_without_a_body_keeps_to_that() -> None:
    message = Message.decode(b"")
    assert (message.body, message.body_type, message.body_sections) == (None, None, [])
    message.subject = "s"
    assert Message.decode(message.encode()).body_type is None


def test_maps_can_be_filled_after_decoding() -> None:
    message = Message.decode(Message("body").encode())
    message.properties["hops"] = 1
    message.annotations["x-opt-b"] = 2
    again = Message.decode(message.encode())
    assert (again.body, again.properties) == ("body", {"hops": 1})
    assert again.annotations == {Symbol("x-opt-b"): 2}


def test_a_section_is_not_decoded_before_it_is_asked_for() -> None:
    broken = encode(Described(ULong(0x74), {1: 1}))  # a key that is no str
    message = Message.decode(broken + encode(Described(ULong(0x77), "fine")))
    assert message.body == "fine"
    for _ in range(2):
        with pytest.raises(DecodeError, match="application_properties cannot have the key 1"):
            _ = message.properties


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x40", "a message section is expected"),
        (b"\x00\x53\x77", "a value is missing"),
        (b"\x00\x53\x77\xa1\x05ab", "string takes 5 bytes"),
        (encode(Described(ULong(0x77), 1)) * 2, "section body is out of order"),
    ],
)
def test_what_is_no_message_is_refused_at_once(data: bytes, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        Message.decode(data)


def test_a_wrong_field_is_named_when_it_is_asked_for() -> None:
    message = Message.decode(encode(Described(ULong(0x73), [None, "not bytes"])))
    with pytest.raises(ProtocolError, match=r"properties\.user-id: binary is expected"):
        _ = message.subject


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"priority": 256}, "priority: 0 to 255 is expected, not 256"),
        ({"delivery_count": -1}, "delivery_count: 0 to 4294967295 is expected"),
        ({"ttl_s": 5e6}, "ttl_s: 0 to 4294967.295 is expected"),
        ({"ttl_s": -1}, "ttl_s: 0 to"),
        ({"ttl_s": float("nan")}, "ttl_s: 0 to"),
        ({"subject": 5}, "properties.subject: str is expected, not 5"),
        ({"group_sequence": -1}, "properties.group-sequence: 0 to 4294967295"),
        ({"message_id": 1.5}, "properties.message-id: an int, a UUID"),
        ({"content_type": "é"}, "a symbol is ASCII"),
        ({"creation_time": 5}, "properties.creation-time: a datetime is expected"),
        ({"properties": {1: 2}}, "key is a str, not 1"),
        ({"annotations": {1.5: 2}}, "key is a symbol, not 1.5"),
        ({"properties": {"a": object()}}, "no type for object"),
    ],
)
def test_what_fits_no_message_is_refused_by_name(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        Message("body", **fields).encode()


def test_strings_of_other_types_are_strings_on_the_wire() -> None:
    message = Message(None, subject=Symbol("s"), to=Symbol("t"), properties={Symbol("k"): 1})
    again = Message.decode(message.encode())
    assert [type(again.subject), type(again.to)] == [str, str]
    assert [type(key) for key in again.properties] == [str]


def test_a_subclass_decodes_to_itself() -> None:
    class Flight(Message):
        pass

    assert type(Flight.decode(Flight("body").encode())) is Flight
    assert type(Flight.sequence([1])) is Flight


def test_a_message_shows_what_differs_from_an_empty_one() -> None:
    message = Message("body", subject="s", priority=5, ttl_s=2)
    assert repr(message) == "Message('body', subject='s', ttl_s=2.0, priority=5)"


def test_a_field_descriptor_takes_messages_only() -> None:
    with pytest.raises(TypeError):
        vars(Message)["subject"].__get__(5, int)


@pytest.mark.parametrize(
    "data",
    [
        "00 5370 c0 02 01 56",
        "00 5370 c0 03 01 56 02",
        "00 5370 c0 03 02 40 60",
        "00 5370 c0 06 03 40 40 52 01 40",
        "00 5370 c0 07 06 404040404040",
        "00 5370 d0 00000004 00000001",
        "00 5370 d0 00000004 ffffffff",
        "00 5370 c0 00 00",
    ],
)
def test_a_malformed_header_is_refused_by_the_finder_and_by_the_message(data: str) -> None:
    raw = bytes.fromhex(data)
    assert inspect(raw)["header"] is False
    with pytest.raises(ProtocolError):
        _ = Message.decode(raw).durable


def test_a_header_may_be_written_in_long_forms() -> None:
    raw = bytes.fromhex(
        "00 80 0000000000000070 d0 00000014 00000005 56 01 50 09 70 00000100 56 01 70 00000007"
    )
    assert inspect(raw)["header"] == (True, 9, 256, True, 7, len(raw))
    message = Message.decode(raw)
    assert (message.durable, message.priority, message.ttl_s) == (True, 9, 0.256)
    assert (message.first_acquirer, message.delivery_count) == (True, 7)


def test_the_finders_stop_at_what_they_look_for() -> None:
    whole = Message(b"x" * 1000, to="queue/a", group_id="g", properties={"k": "v" * 500}).encode()
    found = inspect(whole[:300])
    assert (found["to"], found["group_id"], found["subject"]) == (b"queue/a", b"g", None)
    assert found["sections"] is False


class Knot:
    """Something that can be watched as it goes."""


def test_one_that_holds_only_bytes_is_no_work_for_the_collector() -> None:
    message = Message.decode(Message(b"octets", properties={"a": 1}).encode())
    assert not gc.is_tracked(message)
    assert message.body == b"octets"
    assert not gc.is_tracked(message)
    assert message.properties == {"a": 1}
    assert gc.is_tracked(message)


@pytest.mark.parametrize("where", ["body", "properties", "annotations", "footer", "message_id"])
def test_a_cycle_through_a_received_message_is_collected(where: str) -> None:
    message = Message.decode(Message(b"octets").encode())
    knot = Knot()
    knot.message = message  # type: ignore[attr-defined]  # what makes the cycle
    found = getattr(message, where)
    if isinstance(found, dict):
        found["knot"] = knot
    else:
        setattr(message, where, knot)
    gone = weakref.ref(knot)
    del message, knot, found
    gc.collect()
    assert gone() is None


def test_of_very_many_octets_it_is_not_said_what_is_wrong_with_each() -> None:
    """The reference reads a megabyte in a third of a second."""
    with pytest.raises(DecodeError, match="a message section is expected"):
        Message.decode(b"\x41" * 1_000)
    with pytest.raises(DecodeError, match="the bytes are no message"):
        Message.decode(b"\x41" * 100_000)

"""Messages as bytes: what goes out comes back, and what is wrong names the field."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mesh_messages import messages

from cogwork.amqp.codec import encode as encode_value
from cogwork.amqp.exceptions import EncodeError, ProtocolError
from cogwork.amqp.types import Described, Symbol, UInt, ULong
from cogwork.router.mesh import bounds
from cogwork.router.mesh.effects import Reason
from cogwork.router.mesh.messages import (
    MESSAGES,
    Acknowledgement,
    Advertisement,
    Hello,
    Interest,
    InterestDelta,
    InterestRequest,
    InterestSnapshot,
    Message,
    RedirectHint,
    Summary,
    Version,
)
from cogwork.router.mesh.wire import decode, encode

MESSAGE = messages()


@given(MESSAGE)
def test_every_message_comes_back_as_it_went_out(message: Message) -> None:
    assert decode(encode(message)) == message


def test_every_kind_of_message_is_among_those_that_come_back() -> None:
    assert set(MESSAGES.values()) == {
        Hello,
        Advertisement,
        Summary,
        Acknowledgement,
        InterestDelta,
        InterestRequest,
        InterestSnapshot,
        RedirectHint,
    }


def taken(data: bytes) -> bool:
    """Decode what anybody may have sent: it is a message, or a `ProtocolError`."""
    try:
        decode(data)
    except ProtocolError:
        return False
    return True


@given(st.binary(max_size=200))
def test_bytes_of_a_stranger_are_refused_and_nothing_else(data: bytes) -> None:
    taken(data)


@given(MESSAGE, st.data())
def test_a_damaged_message_is_refused_or_another_message(
    message: Message, draw: st.DataObject
) -> None:
    data = bytearray(encode(message))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    taken(bytes(data[: draw.draw(st.integers(0, len(data)))]))
    taken(bytes(data))


@given(st.sampled_from(sorted(MESSAGES)), st.data())
def test_fields_of_any_type_are_refused_by_name(descriptor: Symbol, draw: st.DataObject) -> None:
    value: st.SearchStrategy[object] = st.none() | st.booleans() | st.text(max_size=5)
    value |= st.binary(max_size=5)
    value |= st.integers(0, 2**32 - 1).map(UInt) | st.integers(0, 2**64 - 1).map(ULong)
    values = draw.draw(st.lists(value | st.lists(value, max_size=14), max_size=12))
    taken(encode_value(Described(descriptor, values)))


def test_a_kind_of_a_later_version_is_passed_over() -> None:
    assert decode(encode_value(Described(Symbol("cogwork:telepathy"), [1, 2]))) is None


def test_what_is_longer_than_any_message_is_not_even_looked_at() -> None:
    with pytest.raises(ProtocolError, match="262145 bytes; at most 262144 are taken"):
        decode(b"\x00" * (bounds.MESSAGE_BYTES_MAX + 1))


def test_what_follows_a_message_is_refused() -> None:
    with pytest.raises(ProtocolError, match="1 bytes follow"):
        decode(encode(RedirectHint()) + b"\x40")


ADVERT = Advertisement(origin="a", incarnation=1, sequence=1)
DELTA = InterestDelta(origin="a", incarnation=1, sequence=1, digest=0)
SUMMARY = Summary(number=1)


@pytest.mark.parametrize(
    ("message", "changes", "text"),
    [
        (ADVERT, {"origin": ""}, "advertisement.origin: text of 1 to 64"),
        (ADVERT, {"origin": "x" * 65}, "advertisement.origin: text of 1 to 64"),
        (ADVERT, {"origin": "ä" * 33}, "advertisement.origin: text of at most 64"),
        (ADVERT, {"origin": "a\nb"}, "advertisement.origin: a printable name"),
        (ADVERT, {"incarnation": 0}, "advertisement.incarnation: 1 to"),
        (ADVERT, {"incarnation": 2**63}, "advertisement.incarnation: 1 to"),
        (ADVERT, {"sequence": 0}, "advertisement.sequence: a number"),
        (ADVERT, {"neighbours": (("b", 0),)}, "advertisement.neighbours: 1 to 65535"),
        (ADVERT, {"neighbours": (("b", 65536),)}, "advertisement.neighbours: 1 to 65535"),
        (ADVERT, {"neighbours": (("c", 1), ("b", 1))}, "neighbours in order, each once"),
        (ADVERT, {"neighbours": (("b", 1), ("b", 1))}, "neighbours in order, each once"),
        (
            ADVERT,
            {"neighbours": tuple((f"{at:03}", 1) for at in range(bounds.NEIGHBOURS_MAX + 1))},
            "at most 256 records of 2",
        ),
        (
            SUMMARY,
            {"versions": (Version("a", 1),) * (bounds.CONTAINERS_MAX + 1)},
            "summary.versions: at most 1024 records of 6",
        ),
        (DELTA, {"added": ((1, Interest(7, "", "x")),)}, "interest-delta.added: 0 to 6"),
        (DELTA, {"added": ((1, Interest(0, "", "x" * 2049)),)}, "text of 1 to 2048"),
        (DELTA, {"added": ((1, Interest(0, "", "")),)}, "text of 1 to 2048"),
        (DELTA, {"added": ((1, Interest(0, "v" * 257, "x")),)}, "text of 1 to 256"),
        (
            DELTA,
            {"added": tuple((at, Interest(0, "", "x")) for at in range(101))},
            "at most 100 records of 7",
        ),
        (DELTA, {"removed": tuple(range(101))}, "at most 100 labels"),
        (RedirectHint(), {"hosts": ("h",) * 65}, "redirect-hint.hosts: at most 64"),
    ],
)
def test_what_is_beyond_the_bounds_is_refused_by_the_name_of_its_field(
    message: Message, changes: dict[str, Any], text: str
) -> None:
    data = encode(dataclasses.replace(message, **changes))
    with pytest.raises(ProtocolError, match=text):
        decode(data)


def test_what_does_not_fit_a_field_is_not_sent() -> None:
    with pytest.raises(EncodeError, match=r"interest-delta\.added"):
        encode(dataclasses.replace(DELTA, added=((1, Interest(0, "", "x", consumers=2**32)),)))


def test_the_largest_messages_fit_the_bound_of_all_messages() -> None:
    entry = Interest(2, "v" * 256, "ä" * 1024, *(2**32 - 1,) * 3)
    version = Version("c" * 64, bounds.INCARNATION_MAX, *(2**32 - 1,) * 4)
    neighbours = tuple((f"{at:064}", bounds.COST_MAX) for at in range(bounds.NEIGHBOURS_MAX))
    for message in (
        dataclasses.replace(
            DELTA,
            origin="c" * 64,
            removed=tuple(range(2**32 - 100, 2**32)),
            added=tuple((2**32 - 1 - at, entry) for at in range(bounds.PART_INTERESTS_MAX)),
        ),
        Summary(number=2**32 - 1, versions=(version,) * bounds.CONTAINERS_MAX),
        dataclasses.replace(ADVERT, neighbours=neighbours),
    ):
        assert decode(encode(message)) == message


def test_the_specification_names_every_message_and_every_field() -> None:
    page = (Path(__file__).parents[4] / "docs" / "internals" / "mesh.md").read_text()
    for descriptor, message in MESSAGES.items():
        section = page.partition(f"**`{descriptor}`**")[2].partition("**`")[0]
        table = "".join(line.split("|")[1] for line in section.splitlines() if line[:1] == "|")
        assert [field.name for field in message.TABLE if field.name not in table] == []
    for reason in Reason:
        assert reason in page

"""Messages of AMQP 0-9-1 as those of AMQP 1.0 and back, and under hostile octets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from amqp091_values import same, short_strings, tables, texts
from hypothesis import given
from hypothesis import strategies as st
from test_amqp091_methods_properties import STRATEGIES, properties_with
from test_compiled_messages import messages

from cogwork.amqp.message import Data, Sections, decode_sections, encode_sections
from cogwork.amqp091.arguments import TABLE
from cogwork.amqp091.content import BasicProperties, decode_properties, encode_properties
from cogwork.amqp091.errors import ProtocolError
from cogwork.amqp091.strings import octets_of
from cogwork.amqp091.tables import decode_table, encode_table
from cogwork.amqp091.types import Timestamp
from cogwork.dataplane.message.basic import is_field_table, pack_basic, unpack_basic
from cogwork.dataplane.message.basic_conversion import (
    AMQP_TYPE,
    amqp_from_basic,
    basic_from_amqp,
    escaped,
    unescaped,
)

SECONDS_MAX = (2**63 - 1) // 1000

ascii_texts = st.text(st.characters(max_codepoint=127), max_size=60)
headers = tables | st.dictionaries(
    st.sampled_from(["x-a", "x-death", "x-é", "b", "x-"]), STRATEGIES[TABLE] | texts, max_size=4
)
properties = st.builds(
    replace,
    properties_with({**STRATEGIES, TABLE: headers}),
    content_type=st.none() | ascii_texts,
    content_encoding=st.none() | ascii_texts,
    expiration=st.none() | st.integers(0, 2**32 - 1).map(str),
    timestamp=st.none() | st.integers(0, SECONDS_MAX),
    type=st.none() | short_strings.filter(lambda text: text != AMQP_TYPE),
)
routes = short_strings.map(octets_of)


def expected(value: Any) -> Any:
    """Return what a header's value is after both ways: AMQP 1.0 counts milliseconds, to an end."""
    if isinstance(value, Timestamp):
        return Timestamp(min(value, SECONDS_MAX))
    if isinstance(value, dict):
        return {key: expected(each) for key, each in value.items()}
    if isinstance(value, list):
        return [expected(each) for each in value]
    return value


@given(routes, routes, properties, st.binary(max_size=300))
def test_there_and_back_nothing_is_lost(
    exchange: bytes, key: bytes, before: BasicProperties, body: bytes
) -> None:
    stored = pack_basic(exchange, key, encode_properties(before), body)
    found = unpack_basic(basic_from_amqp(amqp_from_basic(stored)))
    after = decode_properties(found[2])
    assert (found[0], found[1], found[3]) == (exchange, key, body)
    assert after.delivery_mode == (2 if before.delivery_mode == 2 else 1)
    assert after.priority in {before.priority, None}
    left, right = before.headers or {}, after.headers or {}
    assert same(expected(dict(sorted(left.items()))), dict(sorted(right.items())))
    same_fields = {"headers": None, "delivery_mode": None, "priority": None}
    assert replace(after, **same_fields) == replace(before, **same_fields)


@given(routes, routes, properties, st.binary(max_size=300))
def test_what_is_made_is_a_message_of_the_reference(
    exchange: bytes, key: bytes, before: BasicProperties, body: bytes
) -> None:
    stored = pack_basic(exchange, key, encode_properties(before), body)
    sections = decode_sections(amqp_from_basic(stored))
    assert sections.body == Data([body])
    assert sections.header is None or sections.header.durable == (before.delivery_mode == 2)
    assert sections.properties is not None
    assert sections.properties.subject == escaped(key.decode(errors="surrogateescape"))
    if before.expiration is not None:
        assert sections.header is not None
        assert sections.header.ttl == int(before.expiration)


@given(messages)
def test_any_message_of_the_reference_becomes_one_of_0_9_1(sections: Sections) -> None:
    encoded = encode_sections(sections)
    _, _, octets, body = unpack_basic(basic_from_amqp(encoded))
    made = decode_properties(octets)
    assert made.delivery_mode == (2 if sections.header and sections.header.durable else 1)
    if isinstance(sections.body, Data):
        assert body == b"".join(sections.body.parts)
    elif made.type == AMQP_TYPE:
        again = decode_sections(amqp_from_basic(basic_from_amqp(encoded)))
        assert encode_sections(Sections(body=again.body)) == body


@given(st.binary(max_size=200))
def test_hostile_octets_are_refused_or_understood(octets: bytes) -> None:
    decode_properties(unpack_basic(basic_from_amqp(octets))[2])
    with suppress(ValueError):
        decode_sections(amqp_from_basic(octets))


@given(st.binary(max_size=60) | st.text(max_size=20).map(str.encode))
def test_the_escape_can_be_undone_and_is_utf8(octets: bytes) -> None:
    text = octets.decode(errors="surrogateescape")
    assert unescaped(escaped(text)) == text
    escaped(text).encode()


@given(st.text("\U0010fe80\U0010feffaé", max_size=20))
def test_the_escapes_own_characters_can_be_told_apart(text: str) -> None:
    assert unescaped(escaped(text)) == text


@given(st.none() | short_strings)
def test_message_ids_of_either_kind_come_back(text: str | None) -> None:
    stored = pack_basic(b"", b"k", encode_properties(BasicProperties(message_id=text)), b"")
    found = decode_properties(unpack_basic(basic_from_amqp(amqp_from_basic(stored)))[2])
    assert found.message_id == text


@given(st.binary(max_size=60) | tables.map(lambda table: encode_table(table)[4:]), st.data())
def test_the_compiled_walk_over_a_table_sees_what_the_reference_sees(
    fields: bytes, data: st.DataObject
) -> None:
    if fields and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(fields) - 1))
        fields = fields[:at] + data.draw(st.binary(max_size=2)) + fields[at + 1 :]
    try:
        decode_table(len(fields).to_bytes(4) + fields)
    except ProtocolError as error:
        if "twice" not in error.explanation and "duplicate" not in error.explanation:
            assert not is_field_table(fields)
    else:
        assert is_field_table(fields)

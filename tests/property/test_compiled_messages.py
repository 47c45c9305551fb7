"""`Message` and the reference are one: same bytes, same attributes, same refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amqp_values import same, symbols, texts, timestamps, values
from hypothesis import given
from hypothesis import strategies as st

from cogwork.amqp.errors import ProtocolError
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
from cogwork.amqp.types import ULong
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.message.sections import inspect

if TYPE_CHECKING:
    from collections.abc import Callable

FIELDS = tuple(row.attribute for row in Properties.TABLE)

uints = st.integers(0, 2**32 - 1)
message_ids = st.one_of(
    texts, st.binary(max_size=300), st.uuids(), st.integers(0, 2**64 - 1).map(ULong)
)
headers = st.builds(
    Header,
    durable=st.booleans(),
    priority=st.integers(0, 255),
    ttl=st.none() | uints,
    first_acquirer=st.booleans(),
    delivery_count=st.just(0) | uints,
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "message-id": message_ids,
    "binary": st.binary(max_size=300),
    "string": texts,
    "symbol": symbols,
    "timestamp": timestamps,
    "uint": uints,
}
properties = st.builds(
    Properties, **{row.attribute: st.none() | KINDS[row.kind.name] for row in Properties.TABLE}
)
noted = st.dictionaries(
    symbols | st.integers(0, 2**64 - 1).map(ULong), values, min_size=1, max_size=3
)
bodies: st.SearchStrategy[Body] = st.one_of(
    st.builds(Data, st.lists(st.binary(max_size=300), min_size=1, max_size=3)),
    st.builds(Sequence, st.lists(st.lists(values, max_size=3), min_size=1, max_size=3)),
    st.builds(Value, values),
)
messages = st.builds(
    Sections,
    header=st.none() | headers.filter(lambda header: header != Header()),
    delivery_annotations=st.none() | noted,
    message_annotations=st.none() | noted,
    properties=st.none() | properties.filter(lambda made: made != Properties()),
    application_properties=st.none() | st.dictionaries(texts, values, min_size=1, max_size=3),
    body=bodies,
    footer=st.none() | noted,
)


def message_of(sections: Sections) -> Message:
    """Build by keywords what `sections` says."""
    header = sections.header or Header()
    fields = {name: getattr(sections.properties or Properties(), name) for name in FIELDS}
    fields |= {
        "properties": sections.application_properties,
        "annotations": sections.message_annotations,
        "delivery_annotations": sections.delivery_annotations,
        "footer": sections.footer,
        "durable": header.durable,
        "priority": header.priority,
        "ttl_s": None if header.ttl is None else header.ttl / 1000,
        "first_acquirer": header.first_acquirer,
        "delivery_count": header.delivery_count,
    }
    match sections.body:
        case Data(parts):
            return Message.data(*parts, **fields)
        case Sequence(parts):
            return Message.sequence(*parts, **fields)
        case Value(value) if not isinstance(value, bytes):
            return Message(value, **fields)
        case body:
            message = Message.decode(encode_sections(Sections(body=body)))
            for name, value in fields.items():
                setattr(message, name, value)
            return message


def contents(message: Message) -> list[object]:
    """Return all that a message says, in one order."""
    header = [message.durable, message.priority, message.first_acquirer, message.delivery_count]
    ttl_ms = None if message.ttl_s is None else round(message.ttl_s * 1000)
    return [
        *header,
        ttl_ms,
        message.delivery_annotations,
        message.annotations,
        *(getattr(message, name) for name in FIELDS),
        message.properties,
        message.body_type,
        message.body_sections,
        message.footer,
    ]


def contents_of(sections: Sections) -> list[object]:
    """Return all that a message says, as the reference decoded it, in the same order."""
    header = sections.header or Header()
    match sections.body:
        case Value(value):
            body: tuple[object, object] = ("value", [value])
        case Data(parts):
            body = ("data", parts)
        case Sequence(lists):
            body = ("sequence", lists)
        case _:
            body = (None, [])
    return [
        header.durable,
        int(header.priority),
        header.first_acquirer,
        int(header.delivery_count),
        None if header.ttl is None else int(header.ttl),
        sections.delivery_annotations or {},
        sections.message_annotations or {},
        *(getattr(sections.properties or Properties(), name) for name in FIELDS),
        sections.application_properties or {},
        *body,
        sections.footer or {},
    ]


def outcome(read: Callable[[bytes], object], data: bytes) -> object:
    try:
        return read(data)
    except ProtocolError as error:
        return str(error)


def check(data: bytes) -> None:
    expected = outcome(lambda raw: contents_of(decode_sections(raw)), data)
    assert same(outcome(lambda raw: contents(Message.decode(raw)), data), expected)


@given(messages)
def test_both_encode_to_the_same_bytes(sections: Sections) -> None:
    data = encode_sections(sections)
    assert message_of(sections).encode() == data
    check(data)


@given(messages, st.permutations([*FIELDS, "body", "properties", "annotations", "footer", "ttl_s"]))
def test_what_was_looked_at_in_any_order_encodes_to_the_same(
    sections: Sections, names: list[str]
) -> None:
    data = encode_sections(sections)
    message = Message.decode(data)
    assert message.encode() is data
    for name in names[:6]:
        getattr(message, name)
        assert message.encode() == data


@given(messages, messages)
def test_a_decoded_message_takes_changes(before: Sections, after: Sections) -> None:
    message = Message.decode(encode_sections(before))
    wanted = message_of(Sections(properties=after.properties, body=Value("new")))
    message.body = "new"
    for name in FIELDS:
        setattr(message, name, getattr(wanted, name))
    before.properties, before.body = after.properties, Value("new")
    assert message.encode() == encode_sections(before)


@given(messages, st.data())
def test_both_agree_about_mutated_messages(sections: Sections, data: st.DataObject) -> None:
    mutated = bytearray(encode_sections(sections))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        mutated[at] = data.draw(st.integers(0, 255))
    check(bytes(mutated[: data.draw(st.integers(0, len(mutated)))]))
    inspect(bytes(mutated))


@given(messages)
def test_the_finders_find_what_the_reference_decodes(sections: Sections) -> None:
    data = encode_sections(sections)
    found, header = inspect(data), sections.header or Header()
    named = sections.properties or Properties()
    for name in ("to", "subject", "group_id"):
        text = getattr(named, name)
        assert found[name] == (None if text is None else text.encode())
    shown = (header.durable, header.priority, header.ttl, header.first_acquirer)
    assert isinstance(found["header"], tuple)
    assert found["header"][:5] == (*shown, header.delivery_count)
    assert found["sections"] is True


@given(messages, st.data())
def test_the_finders_see_no_more_of_a_part_than_of_the_whole(
    sections: Sections, data: st.DataObject
) -> None:
    whole = encode_sections(sections)
    found = inspect(whole)
    for name, value in inspect(whole[: data.draw(st.integers(0, len(whole)))]).items():
        if name not in {"sections", "header"}:
            assert value in (None, False, found[name])

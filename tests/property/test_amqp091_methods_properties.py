"""Methods and contents of AMQP 0-9-1 beside those of pika and py-amqp, and under hostile octets."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from amqp.serialization import decode_properties_basic
from amqp091_values import names, short_strings, tables
from hypothesis import given
from hypothesis import strategies as st
from pika import spec

from cogwork.amqp091 import methods
from cogwork.amqp091.arguments import (
    BIT,
    LONG,
    LONG_LONG,
    LONG_STRING,
    NAME,
    OCTET,
    SHORT,
    SHORT_STRING,
    TABLE,
    Kind,
    rows_of,
)
from cogwork.amqp091.assembler import Assembler, Command
from cogwork.amqp091.content import (
    BasicProperties,
    Content,
    decode_properties,
    encode_properties,
    write_command,
)
from cogwork.amqp091.errors import ProtocolError
from cogwork.amqp091.frames import Frame, FrameReader, FrameType
from cogwork.amqp091.method import METHODS, Method, decode_method

STRATEGIES: dict[Kind, st.SearchStrategy[Any]] = {
    BIT: st.booleans(),
    OCTET: st.integers(0, 2**8 - 1),
    SHORT: st.integers(0, 2**16 - 1),
    LONG: st.integers(0, 2**32 - 1),
    LONG_LONG: st.integers(0, 2**64 - 1),
    SHORT_STRING: short_strings,
    NAME: names,
    LONG_STRING: st.binary(max_size=300),
    TABLE: tables,
}

CLIENT_STRATEGIES: dict[Kind, st.SearchStrategy[Any]] = {
    **STRATEGIES,
    SHORT_STRING: st.text(max_size=60),
    LONG_STRING: st.text(min_size=1, max_size=60).map(str.encode),
    TABLE: st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.booleans(), max_size=3),
}
"""What pika takes: its strings are text."""


def method_with(declared: type[Method], strategies: dict[Kind, Any]) -> st.SearchStrategy[Method]:
    return st.builds(declared, **{row.name: strategies[row.kind] for row in declared.TABLE})


every_method = st.sampled_from(list(METHODS.values())).flatmap(
    lambda declared: method_with(declared, STRATEGIES)
)


def properties_with(strategies: dict[Kind, Any]) -> st.SearchStrategy[BasicProperties]:
    rows = rows_of(BasicProperties)
    return st.builds(
        BasicProperties, **{row.name: st.none() | strategies[row.kind] for row in rows}
    )


properties = properties_with(STRATEGIES)
contents = st.builds(Content.of, properties, st.binary(max_size=9000))
commands = every_method.flatmap(
    lambda method: st.builds(
        Command, st.just(method), contents if method.HAS_CONTENT else st.none()
    )
)


def written(command: Command, channel: int = 1) -> bytes:
    out = bytearray()
    write_command(out, channel, *command, frame_max=8192)
    return bytes(out)


@given(every_method)
def test_a_method_that_is_encoded_is_decoded(method: Method) -> None:
    assert decode_method(method.encode()) == method


@given(every_method)
def test_a_method_cut_anywhere_is_refused(method: Method) -> None:
    octets = method.encode()
    for end in range(len(octets)):
        with pytest.raises(ProtocolError) as caught:
            decode_method(octets[:end])
        assert caught.value.is_hard


@given(st.sampled_from(list(METHODS)), st.binary(max_size=60))
def test_any_arguments_are_a_method_or_a_protocol_error(
    ids: tuple[int, int], arguments: bytes
) -> None:
    with suppress(ProtocolError):
        decode_method(b"".join(each.to_bytes(2) for each in ids) + arguments)


@given(properties)
def test_properties_that_are_encoded_are_decoded(given: BasicProperties) -> None:
    octets = encode_properties(given)
    assert decode_properties(octets) == given
    for end in range(len(octets)):
        with pytest.raises(ProtocolError):
            decode_properties(octets[:end])


@given(st.binary(max_size=60))
def test_any_octets_are_properties_or_a_protocol_error(octets: bytes) -> None:
    with suppress(ProtocolError):
        decode_properties(octets)


@given(st.lists(commands, max_size=4), st.integers(1, 5000))
def test_commands_come_whole_however_the_stream_is_cut(sent: list[Command], width: int) -> None:
    stream = b"".join(map(written, sent))
    reader, assembler = FrameReader(), Assembler()
    pieces = (stream[at : at + width] for at in range(0, len(stream), width))
    found = [assembler.feed(frame) for piece in pieces for frame in reader.feed(piece)]
    assert [each for each in found if each is not None] == sent


@given(st.lists(st.tuples(st.sampled_from(FrameType), st.binary(max_size=30)), max_size=6))
def test_any_frames_are_commands_or_a_protocol_error(payloads: list[tuple[int, bytes]]) -> None:
    assembler = Assembler()
    publish = Frame(FrameType.METHOD, 1, methods.BasicPublish().encode())
    for frame_type, payload in payloads:
        with suppress(ProtocolError):
            assembler.feed(publish if not payload else Frame(frame_type, 1, payload))


def pika_method(declared: type[Method]) -> Any:
    """Return what pika calls a method, as `Queue.DeclareOk`, without any arguments."""
    class_name, _, name = declared.NAME.partition(".")
    camel = "".join(word.capitalize() for word in name.split("-"))
    made = getattr(getattr(spec, class_name.capitalize()), camel)
    return made.__new__(made)


def pika_name(name: str) -> str:
    return "global_qos" if name == "global_" else name


@pytest.mark.parametrize("declared", METHODS.values(), ids=lambda each: each.NAME)
@given(st.data())
def test_pika_and_this_codec_agree_on_every_method(
    declared: type[Method], data: st.DataObject
) -> None:
    method = data.draw(method_with(declared, CLIENT_STRATEGIES))
    made = pika_method(declared)
    assert (declared.CLASS_ID << 16 | declared.METHOD_ID) == made.INDEX
    for row in declared.TABLE:
        setattr(made, pika_name(row.name), getattr(method, row.name))
    octets = made.INDEX.to_bytes(4) + b"".join(made.encode())
    assert method.encode() == octets
    assert decode_method(octets) == method
    read = pika_method(declared)
    read.decode(method.encode(), 4)
    for row in declared.TABLE:
        if row.kind is not LONG_STRING:  # pika makes these into their Python notation
            assert getattr(read, pika_name(row.name)) == getattr(method, row.name)


def test_pika_knows_no_method_that_is_missing() -> None:
    indices = {class_id << 16 | method_id for class_id, method_id in METHODS}
    assert set(spec.methods) <= indices


@given(properties_with(CLIENT_STRATEGIES))
def test_pika_and_this_codec_agree_on_properties(given: BasicProperties) -> None:
    octets = encode_properties(given)
    made = spec.BasicProperties()
    made.decode(octets)
    for row in rows_of(BasicProperties):
        assert getattr(made, row.name) == getattr(given, row.name)
    assert b"".join(made.encode()) == octets


@given(properties_with(CLIENT_STRATEGIES))
def test_py_amqp_and_this_codec_agree_on_properties(given: BasicProperties) -> None:
    octets = encode_properties(given)
    found, end = decode_properties_basic(octets, 0)
    assert end == len(octets)
    for row in rows_of(BasicProperties):
        name = "application_headers" if row.name == "headers" else row.name
        assert found.get(name) == getattr(given, row.name)

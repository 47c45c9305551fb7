"""Field tables and frames of AMQP 0-9-1 under random values and hostile octets."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from amqp.serialization import dumps, loads
from amqp091_values import same, tables
from hypothesis import given
from hypothesis import strategies as st
from pika import data as pika_data

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.frames import Frame, FrameReader, write_frame
from cogwork.amqp091.tables import decode_table, encode_table

frames = st.lists(
    st.builds(Frame, st.integers(0, 255), st.integers(0, 65535), st.binary(max_size=50)), max_size=6
)

client_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**31) + 1, 2**31 - 1),
        st.text(max_size=20),
        st.integers(-(2**27), 2**27).map(lambda tens: Decimal(tens * 10 + 1).scaleb(-3)),
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)
client_tables = st.dictionaries(st.text(max_size=10), client_values, max_size=5)
"""What pika, py-amqp and this codec have the same types for; pika drops a decimal's last zeros."""


@given(tables)
def test_what_is_encoded_is_decoded(table: dict[str, object]) -> None:
    assert same(decode_table(encode_table(table)), table)


@given(tables, st.data())
def test_a_truncated_table_is_a_frame_error(table: dict[str, object], data: st.DataObject) -> None:
    octets = encode_table(table)
    with pytest.raises(ProtocolError) as caught:
        decode_table(octets[: data.draw(st.integers(0, len(octets) - 1))])
    assert caught.value.code is ReplyCode.FRAME_ERROR


@given(tables, st.data())
def test_any_damage_is_a_table_or_a_protocol_error(
    table: dict[str, object], data: st.DataObject
) -> None:
    octets = bytearray(encode_table(table))
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError):
        decode_table(bytes(octets))


@given(st.binary(max_size=60))
def test_any_octets_are_a_table_or_a_protocol_error(octets: bytes) -> None:
    with suppress(ProtocolError):
        decode_table(len(octets).to_bytes(4) + octets)


@given(frames, st.data())
def test_frames_come_whole_however_the_stream_is_cut(
    sent: list[Frame], data: st.DataObject
) -> None:
    out = bytearray()
    for each in sent:
        write_frame(out, *each)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(out)), max_size=8)))
    reader = FrameReader()
    received: list[Frame] = []
    for start, end in zip([0, *cuts], [*cuts, len(out)], strict=True):
        received += reader.feed(bytes(out[start:end]))
    assert received == sent


@given(st.binary(max_size=60))
def test_any_octets_are_frames_or_a_protocol_error(octets: bytes) -> None:
    with suppress(ProtocolError):
        list(FrameReader().feed(octets))


@given(client_tables)
def test_pika_and_this_codec_agree(table: dict[str, Any]) -> None:
    pieces: list[bytes] = []
    pika_data.encode_table(pieces, table)
    assert encode_table(table) == b"".join(pieces)
    assert pika_data.decode_table(encode_table(table), 0)[0] == table
    assert decode_table(b"".join(pieces)) == table


@given(client_tables)
def test_py_amqp_and_this_codec_agree(table: dict[str, Any]) -> None:
    octets = dumps("F", [table])
    assert encode_table(table) == octets
    assert loads("F", encode_table(table), 0)[0][0] == table
    assert decode_table(octets) == table


def test_wide_integers_and_times_of_clients_are_understood() -> None:
    """pika writes a wide integer as `l`, py-amqp as `L`; both write times in 64 bits."""
    time = datetime(2026, 11, 29, tzinfo=UTC)
    table = {"n": 2**40, "t": time}
    pieces: list[bytes] = []
    pika_data.encode_table(pieces, table)
    expected = {"n": 2**40, "t": int(time.timestamp())}
    assert decode_table(b"".join(pieces)) == expected
    assert decode_table(dumps("F", [table])) == expected

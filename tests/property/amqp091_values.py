"""Strategies for values of AMQP 0-9-1, and a comparison that heeds types."""

from __future__ import annotations

import struct
from decimal import Decimal

from hypothesis import strategies as st

from cogwork.amqp091.strings import text_of
from cogwork.amqp091.types import (
    Float32,
    Int8,
    Int16,
    Int64,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
)

short_strings = st.binary(max_size=255).map(text_of)
texts = st.binary(max_size=40).map(text_of)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)

plain_ints = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**31), 2**31 - 1)

simple_values = st.one_of(
    st.none(),
    st.booleans(),
    plain_ints,
    st.floats(allow_nan=False),
    texts,
    st.binary(max_size=40),
    st.builds(Decimal, st.integers(-(2**31), 2**31 - 1)),
    st.integers(-(2**31), 2**31 - 1).map(lambda number: Decimal(number).scaleb(-2)),
    st.integers(-128, 127).map(Int8),
    st.integers(0, 255).map(UInt8),
    st.integers(-(2**15), 2**15 - 1).map(Int16),
    st.integers(0, 2**16 - 1).map(UInt16),
    st.integers(0, 2**32 - 1).map(UInt32),
    st.integers(-(2**31), 2**31 - 1).map(Int64),
    st.integers(0, 2**64 - 1).map(Timestamp),
    st.floats(width=32, allow_nan=False).map(Float32),
)
values = st.recursive(
    simple_values,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
tables = st.dictionaries(st.binary(max_size=10).map(text_of), values, max_size=5)


def same(one: object, other: object) -> bool:
    """Return whether two values are equal, with equal types all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack(">d", one) == struct.pack(">d", other)
    return one == other

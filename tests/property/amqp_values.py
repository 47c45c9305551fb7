"""Strategies for AMQP values, and a comparison that tells `UInt(1)` from `1` and `True`."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from hypothesis import strategies as st

from cogwork.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float32,
    Int,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)

RANGED = (UByte, UShort, UInt, ULong, Byte, Short, Int)

Ranged: TypeAlias = UByte | UShort | UInt | ULong | Byte | Short | Int

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ranged(kind: type[Ranged]) -> st.SearchStrategy[Ranged]:
    return st.integers(kind.MIN, kind.MAX).map(kind)


def decimals(kind: type[Decimal], digits: int, low: int, high: int) -> st.SearchStrategy[object]:
    finite = st.builds(
        lambda sign, coefficient, exponent: kind(f"{sign}{coefficient}E{exponent}"),
        st.sampled_from(["", "-"]),
        st.integers(0, 10**digits - 1),
        st.integers(low, high),
    )
    return finite | st.sampled_from(["NaN", "-NaN", "sNaN", "Infinity", "-Infinity"]).map(kind)


symbols = st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol)
texts = st.text(max_size=20) | st.text("aé€😀", min_size=90, max_size=300)
timestamps = st.integers(-(2**45), 2**47).map(lambda ms: EPOCH + timedelta(milliseconds=ms))
characters = st.characters(exclude_categories=["Cs"]).map(Char)

ITEMS: dict[type, st.SearchStrategy[object]] = {
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 300),
    float: st.floats(allow_nan=True),
    str: texts,
    bytes: st.binary(max_size=300),
    datetime: timestamps,
    **{kind: ranged(kind) | st.integers(0, 100).map(kind) for kind in RANGED},
    Float32: st.floats(width=32).map(Float32),
    Char: characters,
    Symbol: symbols,
    Decimal32: decimals(Decimal32, 7, -101, 90),
    Decimal64: decimals(Decimal64, 16, -398, 369),
    Decimal128: decimals(Decimal128, 34, -6176, 6111),
}

scalars = st.one_of(st.none(), st.uuids(), *ITEMS.values())
keys = st.one_of(texts, symbols, ranged(ULong), st.integers(-300, 300), st.uuids())


def arrays(nested: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    descriptors = st.none() | symbols | ranged(ULong)
    flat = st.sampled_from(sorted(ITEMS, key=lambda kind: kind.__name__)).flatmap(
        lambda kind: st.builds(Array, st.lists(ITEMS[kind], max_size=5), st.just(kind), descriptors)
    )
    lists = st.builds(Array, st.lists(st.lists(nested, max_size=3), max_size=3), st.just(list))
    return flat | lists


values = st.recursive(
    scalars,
    lambda nested: st.one_of(
        st.lists(nested, max_size=5),
        st.dictionaries(keys, nested, max_size=5),
        st.builds(Described, ranged(ULong) | symbols, nested),
        arrays(nested),
    ),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:  # noqa: PLR0911  # a case for each type
    """Whether both are one AMQP value: equal, of one type, bit by bit for floats."""
    if type(left) is not type(right):
        return False
    match left:
        case float():
            return struct.pack(">d", left) == struct.pack(">d", right) or (
                math.isnan(left) and math.isnan(right)
            )
        case Decimal():
            return bool(left.as_tuple() == right.as_tuple())
        case list() | tuple():
            return len(left) == len(right) and all(map(same, left, right))
        case dict():
            return same(list(left), list(right)) and same(list(left.values()), list(right.values()))
        case Described():
            return same(left.descriptor, right.descriptor) and same(left.value, right.value)
        case Array():
            return left.element_type is right.element_type and same(
                [left.descriptor, *left.items], [right.descriptor, *right.items]
            )
        case _:
            return bool(left == right)

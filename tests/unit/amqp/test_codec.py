"""The codec against bytes written by hand from the specification."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from types import NoneType

import pytest

from cogwork.amqp.codec import MAX_DEPTH, MAX_EMPTY_ITEMS, MAX_HASH_CLASHES, decode, encode
from cogwork.amqp.errors import Condition, DecodeError, EncodeError
from cogwork.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Described,
    Float32,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

SAMPLES = [
    (None, "40"),
    (True, "41"),
    (False, "42"),
    (UByte(7), "50 07"),
    (UShort(7), "60 0007"),
    (UInt(0), "43"),
    (UInt(255), "52 ff"),
    (UInt(256), "70 00000100"),
    (ULong(0), "44"),
    (ULong(255), "53 ff"),
    (ULong(2**64 - 1), "80 ffffffffffffffff"),
    (Byte(-1), "51 ff"),
    (Short(-2), "61 fffe"),
    (Int(-128), "54 80"),
    (Int(128), "71 00000080"),
    (-128, "55 80"),
    (128, "81 0000000000000080"),
    (Float32(1.5), "72 3fc00000"),
    (1.5, "82 3ff8000000000000"),
    (Decimal32("-1.5"), "74 b200000f"),
    (Decimal32("9999999E90"), "74 77f8967f"),
    (Decimal64("1"), "84 31c0000000000001"),
    (Char("é"), "73 000000e9"),
    (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "83 00000000000003e8"),
    (Timestamp(2**62), "83 4000000000000000"),
    (uuid.UUID(int=1), "98 00000000000000000000000000000001"),
    (b"ab", "a0 02 6162"),
    ("é", "a1 02 c3a9"),
    (Symbol("ab"), "a3 02 6162"),
    (b"a" * 256, "b0 00000100" + "61" * 256),
    ([], "45"),
    ([None, [True]], "c0 06 02 40 c0 02 01 41"),
    ([None] * 256, "d0 00000104 00000100" + "40" * 256),
    ({}, "c1 01 00"),
    ({"a": 1}, "c1 06 02 a10161 5501"),
    (Array([], str), "e0 02 00 a1"),
    (Array([ULong(1), ULong(2)], ULong), "e0 04 02 53 01 02"),
    (Array([ULong(1), ULong(256)], ULong), "e0 12 02 80 0000000000000001 0000000000000100"),
    (Array([True, False], bool), "e0 04 02 56 01 00"),
    (Array([Symbol("a")], Symbol), "e0 04 01 a3 01 61"),
    (Array(["a"], str, ULong(9)), "e0 07 01 00 5309 a1 01 61"),
    (Array([[1]], list), "e0 0c 01 d0 00000006 00000001 5501"),
    (Described(ULong(0x24), []), "00 5324 45"),
]


@pytest.mark.parametrize(("value", "encoded"), SAMPLES)
def test_the_smallest_encoding_and_back(value: object, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode(value) == data
    decoded, following = decode(data)
    assert decoded == value
    assert type(decoded) is type(value)
    assert following == len(data)


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        (2**63, ULong(2**63)),
        (Decimal("1.50"), Decimal("1.50")),
        (bytearray(b"a"), b"a"),
        (memoryview(b"a"), b"a"),
        ((1, 2), [1, 2]),
        (
            datetime(2024, 2, 29, 13, 0, tzinfo=timezone(timedelta(hours=1))),
            datetime(2024, 2, 29, 12, 0, tzinfo=UTC),
        ),
        (
            datetime(2024, 1, 1, 0, 0, 0, 1999, tzinfo=UTC),
            datetime(2024, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
        ),
        (Condition.NOT_FOUND, Symbol("amqp:not-found")),
    ],
)
def test_what_python_has_more_of_than_amqp(value: object, decoded: object) -> None:
    assert decode(encode(value))[0] == decoded


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("56 01", True),
        ("56 00", False),
        ("70 00000001", UInt(1)),
        ("80 0000000000000001", ULong(1)),
        ("71 ffffffff", Int(-1)),
        ("81 ffffffffffffffff", -1),
        ("b1 00000001 61", "a"),
        ("b3 00000001 61", Symbol("a")),
        ("d0 00000005 00000001 40", [None]),
        ("d1 00000006 00000002 43 40", {UInt(0): None}),
        ("f0 00000006 00000001 50 01", Array([UByte(1)], UByte)),
        ("e0 02 03 40", Array([None, None, None], NoneType)),
        ("00 a301 61 40", Described(Symbol("a"), None)),
        ("84 6c7fffff ffffffff", Decimal64(0)),
    ],
)
def test_other_encodings_are_understood(encoded: str, value: object) -> None:
    assert decode(bytes.fromhex(encoded))[0] == value


@pytest.mark.parametrize(
    ("encoded", "words", "offset"),
    [
        ("", "missing", 0),
        ("00", "missing", 1),
        ("00 53 24", "missing", 3),
        ("3f", "0x3f is no format code", 0),
        ("70 0000", "uint takes 4 bytes, 2 are left", 1),
        ("56 02", "0 or 1", 1),
        ("73 0000d800", "Unicode scalar", 1),
        ("73 00110000", "Unicode scalar", 1),
        ("73 ffffffff", "Unicode scalar", 1),
        ("a1", "string's length", 1),
        ("a1 02 61", "string takes 2 bytes, 1 are left", 2),
        ("a1 02 61ff", "UTF-8", 3),
        ("a3 01 80", "ASCII", 2),
        ("b0 ffffffff 00", "binary takes 4294967295", 5),
        ("c0 00", "list's count", 2),
        ("c0 01 02", "list of 2 items", 3),
        ("c0 03 01 40 40", "ends at byte 5", 4),
        ("c0 02 01 50", "ubyte takes 1", 4),
        ("d0 00000004 ffffffff", "4294967295 items", 9),
        ("c1 02 01 40", "pairs", 3),
        ("c1 05 04 4040 4040", "twice", 5),
        ("c1 03 02 45 40", "key cannot be of type list", 3),
        ("e0 01 00", "constructor is missing", 3),
        ("e0 03 01 00 40", "constructor is missing", 5),
        ("e0 05 01 00 40 00 40", "more than one descriptor", 5),
        ("e0 02 ff 40", "255 items of null", 4),
        ("f0 00000005 ffffffff 40", "items of null", 10),
        ("f0 00000005 ffffffff 50", "items of ubyte", 10),
    ],
)
def test_wrong_bytes_are_refused_by_place_and_reason(encoded: str, words: str, offset: int) -> None:
    with pytest.raises(DecodeError, match=words) as caught:
        decode(bytes.fromhex(encoded))
    assert caught.value.offset == offset
    assert caught.value.condition == Condition.DECODE_ERROR


def nested_list(levels: int) -> object:
    value: object = None
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_has_a_limit_both_ways() -> None:
    deepest = nested_list(MAX_DEPTH)
    assert decode(encode(deepest))[0] == deepest
    with pytest.raises(EncodeError, match="deeper than 32"):
        encode(nested_list(MAX_DEPTH + 1))
    data = b"\x40"
    for _ in range(MAX_DEPTH + 1):
        data = bytes((0xC0, len(data) + 1, 1)) + data
    with pytest.raises(DecodeError, match="deeper than 32"):
        decode(data)


@pytest.mark.parametrize(
    "opening", [b"\x00", b"\xe0\xff\x01", b"\xf0\x00\x00\xff\xff\x00\x00\x00\x01"]
)
def test_no_opening_repeated_for_ever_exhausts_the_stack(opening: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(opening * 100_000)


def test_arrays_of_arrays_are_limited_too() -> None:
    array: object = Array([], str)
    for _ in range(MAX_DEPTH):
        array = Array([array], Array)
    assert decode(encode(array))[0] == array
    with pytest.raises(EncodeError, match="deeper than 32"):
        encode(Array([array], Array))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1, 2}, "no type for set"),
        (2**64, "out of range"),
        (-(2**63) - 1, "out of range"),
        (Symbol("é"), "ASCII"),
        ("\ud800", "surrogates"),
        (datetime(2024, 1, 1), "time zone"),  # naive is what is refused
        (Decimal("1E7000"), "exponents from -6176 to 6111"),
        (Decimal32("12345678"), "7 digits"),
        (Array([1, "a"], int), "array of int holds str"),
        (Array([True], int), "array of int holds bool"),
        (Array([None] * (MAX_EMPTY_ITEMS + 1), NoneType), "at most 16 nulls"),
        (Array([], set), "items of type set"),
        ([1, {"a": object()}], "no type for object"),
    ],
)
def test_what_has_no_encoding_is_refused(value: object, words: str) -> None:
    with pytest.raises(EncodeError, match=words):
        encode(value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: UByte(256), "UByte holds 0 to 255, not 256"),
        (lambda: Int(2**31), "Int holds"),
        (lambda: ULong(-1), "ULong holds"),
        (lambda: Char("ab"), "one Unicode character"),
        (lambda: Float32(1e39), "Float32 holds"),
    ],
)
def test_types_check_their_ranges(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=words):
        make()


def test_bounds_outside_of_the_data_are_refused() -> None:
    for offset, end in ((-1, None), (2, None), (0, 2), (1, 0)):
        with pytest.raises(DecodeError, match="do not lie in 1"):
            decode(b"\x40", offset, end)


def test_keys_chosen_to_clash_are_refused_before_they_cost_time() -> None:
    modulus = 2**61 - 1  # Python hashes numbers modulo this prime
    keys = {uuid.UUID(int=factor * modulus): None for factor in range(MAX_HASH_CLASHES + 2)}
    with pytest.raises(DecodeError, match="hashes clash"):
        decode(encode(keys))
    honest = {uuid.UUID(int=number): None for number in range(1000)}
    assert decode(encode(honest))[0] == honest

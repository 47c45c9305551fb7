"""Field tables of AMQP 0-9-1, octet by octet."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cogwork.amqp091.errors import EncodeError, ProtocolError, ReplyCode
from cogwork.amqp091.tables import MAX_DEPTH, MAX_TABLE_OCTETS, decode_table, encode_table
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

VALUES = [
    ("74 01", True),
    ("74 00", False),
    ("62 ff", Int8(-1)),
    ("42 ff", UInt8(255)),
    ("73 8000", Int16(-32768)),
    ("75 ffff", UInt16(65535)),
    ("49 fffffffe", -2),
    ("69 ffffffff", UInt32(2**32 - 1)),
    ("6c 0000000000000001", Int64(1)),
    ("6c ffffffff80000000", Int64(-(2**31))),
    ("6c 000000007fffffff", Int64(2**31 - 1)),
    ("6c ffffffff7fffffff", -(2**31) - 1),
    ("6c 0000000080000000", 2**31),
    ("6c 8000000000000000", -(2**63)),
    ("66 3fc00000", Float32(1.5)),
    ("64 3ff8000000000000", 1.5),
    ("44 02 0000013a", Decimal("3.14")),
    ("44 01 fffffff6", Decimal("-1.0")),
    ("53 00000003 e282ac", "€"),
    ("53 00000002 ff00", "\udcff\0"),
    ("78 00000002 00ff", b"\0\xff"),
    ("54 ffffffffffffffff", Timestamp(2**64 - 1)),
    ("41 00000004 74 01 56 56", [True, None, None]),
    ("46 00000004 01 61 74 01", {"a": True}),
    ("46 00000000", {}),
    ("56", None),
]


def table_of(value: str, key: bytes = b"k") -> bytes:
    """Return a table with one field, its value in hexadecimal digits."""
    field = bytes([len(key)]) + key + bytes.fromhex(value)
    return len(field).to_bytes(4) + field


def refusal_of(octets: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decode_table(octets)
    return caught.value


@pytest.mark.parametrize(("octets", "value"), VALUES)
def test_each_type_has_its_octets(octets: str, value: object) -> None:
    table = decode_table(table_of(octets))
    assert table == {"k": value}
    assert type(table["k"]) is type(value)
    assert encode_table({"k": value}) == table_of(octets)


@pytest.mark.parametrize(
    ("octets", "value", "encoded"),
    [
        ("4c 0000000000000001", Int64(1), "6c 0000000000000001"),
        ("4c 7fffffffffffffff", 2**63 - 1, "6c 7fffffffffffffff"),
        ("74 07", True, "74 01"),
    ],
)
def test_two_octets_for_one_thing_become_one(octets: str, value: object, encoded: str) -> None:
    assert decode_table(table_of(octets)) == {"k": value}
    assert encode_table(decode_table(table_of(octets))) == table_of(encoded)


def test_a_tuple_is_an_array() -> None:
    assert encode_table({"k": (None,)}) == table_of("41 00000001 56")


def test_keys_that_are_not_utf8_stay_octet_for_octet() -> None:
    octets = table_of("56", key=b"\xff\xc3\x28\0")
    assert encode_table(decode_table(octets)) == octets


def test_fields_keep_their_order() -> None:
    table = {"b": 1, "a": 2, "": 3}
    assert list(decode_table(encode_table(table)).items()) == list(table.items())


@pytest.mark.parametrize(
    ("octets", "explanation"),
    [
        (table_of("55 0001"), "unknown table field type b'U'"),
        (table_of("00"), "unknown table field type b'\\x00'"),
        ((6).to_bytes(4) + b"\x01kV\x01kV", "table has field 'k' twice"),
    ],
)
def test_what_means_nothing_is_a_syntax_error(octets: bytes, explanation: str) -> None:
    error = refusal_of(octets)
    assert (error.code, error.explanation) == (ReplyCode.SYNTAX_ERROR, explanation)


@pytest.mark.parametrize(
    ("octets", "explanation"),
    [
        (b"\0\0\0", "4 octets are needed at 0, 3 are left"),
        (b"\xff\xff\xff\xff", "4294967295 octets are needed at 4, 0 are left"),
        (b"\0\0\0\1\1", "1 octets are needed at 5, 0 are left"),
        (b"\0\0\0\0V", "1 octets follow the last value, at 4"),
        (table_of("53 00000002 61"), "2 octets are needed at 11, 1 are left"),
    ],
)
def test_what_does_not_fit_is_a_frame_error(octets: bytes, explanation: str) -> None:
    error = refusal_of(octets)
    assert (error.code, error.explanation) == (ReplyCode.FRAME_ERROR, explanation)


def test_the_octets_behind_a_nested_table_are_not_its_own() -> None:
    """A string that is as long as the outer table, within an inner one that is shorter."""
    octets = table_of("46 00000007 01 61 53 00000004 62 63 64 65")
    assert refusal_of(octets).explanation == "4 octets are needed at 18, 0 are left"


@pytest.mark.parametrize("code", [b"A", b"\1kF"])
def test_a_thousand_nested_tables_are_refused(code: bytes) -> None:
    octets = b""
    for _ in range(1000):
        octets = code + len(octets).to_bytes(4) + octets
    octets = b"\1k" + octets if code == b"A" else octets
    assert refusal_of(len(octets).to_bytes(4) + octets).explanation == (
        f"tables and arrays nest deeper than {MAX_DEPTH}"
    )


@pytest.mark.parametrize("kind", ["table", "array"])
def test_as_deep_as_allowed_goes_both_ways(kind: str) -> None:
    value: object = None
    for _ in range(MAX_DEPTH - 1):
        value = [value] if kind == "array" else {"k": value}
    octets = encode_table({"k": value})
    assert decode_table(octets) == {"k": value}
    with pytest.raises(EncodeError, match=f"nest deeper than {MAX_DEPTH}"):
        encode_table({"k": {"k": value}})
    deeper = b"\1kF" + octets
    error = refusal_of(len(deeper).to_bytes(4) + deeper)
    assert error.explanation == f"tables and arrays nest deeper than {MAX_DEPTH}"


def test_a_table_may_be_as_large_as_its_limit() -> None:
    fields = len(table_of("53 00000000")) - 4
    text = "a" * (MAX_TABLE_OCTETS - fields)
    octets = encode_table({"k": text})
    assert decode_table(octets) == {"k": text}
    with pytest.raises(EncodeError, match="exceeds 1048576"):
        encode_table({"k": text + "a"})
    larger = (MAX_TABLE_OCTETS + 1).to_bytes(4) + bytes(MAX_TABLE_OCTETS + 1)
    assert refusal_of(larger).explanation == "table of 1048577 octets exceeds 1048576"


@pytest.mark.parametrize(
    ("table", "explanation"),
    [
        ({"k": object}, "'k': no table field type for type <class 'object'>"),
        ({"k": {"l": {1}}}, "'k': 'l': no table field type for set {1}"),
        ({"k" * 256: 1}, "short string of 256 octets (at most 255)"),
        ({b"k": 1}, "str is expected, not bytes b'k'"),
        ({"k": "\ud800"}, "'k': '\\ud800' cannot be encoded: surrogates not allowed"),
        ({"k": 2**63}, "'k': 9223372036854775808 is out of range"),
        ({"k": Int8(128)}, "'k': 128 is out of range"),
        ({"k": Float32(1e300)}, "'k': 1e+300 is out of range"),
        ({"k": Decimal("NaN")}, "'k': decimal NaN has no scale from 0 to 255"),
        ({"k": Decimal("1E+3")}, "'k': decimal 1E+3 has no scale from 0 to 255"),
        ({"k": Decimal(10**10)}, "'k': decimal 10000000000 exceeds 32 bits"),
        ({"k": Decimal(2**31)}, "'k': Decimal('2147483648') is out of range"),
    ],
)
def test_what_has_no_encoding_is_named(table: dict[str, object], explanation: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_table(table)
    assert str(caught.value).startswith(explanation)

"""Bodies that are JSON, as a column: what does not fit is null, whatever it is."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")

import pyarrow as pa

from cogwork.pipeline.spark.json_bodies import parsed
from cogwork.pipeline.spark.json_times import zone_of

if TYPE_CHECKING:
    from cogwork.pipeline.spark.json_times import Zone

STRUCT = pa.struct([("a", pa.int64())])
LISTS = pa.list_(STRUCT)
MAPS = pa.map_(pa.string(), pa.int64())
NESTED = pa.struct([("s", STRUCT), ("l", LISTS), ("n", pa.int64())])

GOOD = {STRUCT: b'{"a": 1}', LISTS: b'[{"a": 1}]', MAPS: b'{"a": 1}', NESTED: b'{"s": {"a": 1}}'}

NO_JSON = [
    b"",
    b"{",
    b'{"a": "Z\xfcrich"}',
    b'"\xff\xfe"',
    b"[" * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b"[" * 900 + b"]" * 900,
]


@pytest.mark.parametrize("kind", GOOD, ids=str)
def test_what_is_no_json_is_null_beside_what_is(kind: pa.DataType) -> None:
    good = parsed(pa.array([GOOD[kind]]), kind).to_pylist()
    assert good != [None]
    for body in NO_JSON:
        found = parsed(pa.array([GOOD[kind], body, None, GOOD[kind]]), kind)
        assert found.to_pylist() == [*good, None, None, *good], body[:20]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (STRUCT, b"[]"),
        (STRUCT, b'""'),
        (STRUCT, b"[1]"),
        (STRUCT, b'{"a": []}'),
        (LISTS, b'""'),
        (LISTS, b"[[]]"),
        (MAPS, b"[]"),
        (MAPS, b'""'),
        (NESTED, b'{"s": []}'),
        (NESTED, b'{"l": ""}'),
        (NESTED, b'{"l": [{"a": 1}, []]}'),
        (pa.map_(pa.string(), STRUCT), b'{"k": []}'),
    ],
    ids=str,
)
def test_what_is_of_another_form_is_null_as_a_whole(kind: pa.DataType, body: bytes) -> None:
    assert parsed(pa.array([body, b"null"]), kind).to_pylist() == [None, None]


def test_what_is_lacking_is_null_and_what_is_empty_is_not() -> None:
    bodies = [b"{}", b'{"s": {}, "l": [], "x": []}', b'{"s": null, "l": [null]}']
    assert parsed(pa.array(bodies), NESTED).to_pylist() == [
        {"s": None, "l": None, "n": None},
        {"s": {"a": None}, "l": [], "n": None},
        {"s": None, "l": [None], "n": None},
    ]
    assert parsed(pa.array([b"{}"]), MAPS).to_pylist() == [[]]


def one(kind: pa.DataType, text: str, zone: Zone = 0) -> object:
    """What a value is in a column of a type, as Arrow keeps it; `null` where it does not fit."""
    body = f'{{"v": {text}}}'.encode()
    found = parsed(pa.array([body]), pa.struct([("v", kind)]), zone)
    if not found[0].is_valid:
        return "null"
    values = found.field("v")
    if pa.types.is_date(kind):
        return values.cast(pa.int32())[0].as_py()
    return (values.cast(pa.int64()) if pa.types.is_timestamp(kind) else values)[0].as_py()


UTC = pa.timestamp("us", tz="UTC")
LOCAL = pa.timestamp("us")
DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int64(), "1.5"),
        (pa.int64(), "1.0"),
        (pa.int64(), "1e2"),
        (pa.int64(), "true"),
        (pa.int64(), '"1"'),
        (pa.int64(), "9223372036854775808"),
        (pa.int8(), "128"),
        (pa.int8(), "255"),
        (pa.int32(), "-2147483649"),
        (pa.float32(), "1e300"),
        (pa.float32(), "-1e39"),
        (pa.float64(), "1e400"),
        (pa.float64(), "1" + "0" * 400),
        (pa.float64(), "true"),
        (pa.float64(), '"1.5"'),
        (pa.bool_(), "1"),
        (pa.bool_(), '"true"'),
        (pa.date32(), "5"),
        (pa.date32(), '"2021-02-29"'),
        (UTC, "5.5"),
        (UTC, "9223372036854775807"),
        (UTC, '"12:30"'),
        (UTC, '"2020-01-02T24:00"'),
        (LOCAL, "5"),
        (LOCAL, '"2020-01-02T10:20:30Z"'),
        (pa.decimal128(5, 2), "999.995"),
        (pa.decimal128(5, 2), "1e999999999999999999999"),
        (pa.decimal128(5, 2), "true"),
        (pa.string(), r'"\ud800"'),
        (pa.binary(), '"A"'),
        (pa.binary(), "5"),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_makes_the_body_null(kind: pa.DataType, text: str) -> None:
    assert one(kind, text) == "null"
    assert one(pa.list_(kind), f"[null, {text}]") == "null", "inside, too"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.int8(), "-128", -128),
        (pa.float32(), "0.5", 0.5),
        (pa.float32(), "3.4028235677973366e38", 3.4028234663852886e38),
        (pa.float64(), "7", 7.0),
        (pa.float64(), "Infinity", float("inf")),
        (pa.decimal128(5, 2), "1.5", Decimal("1.50")),
        (pa.decimal128(5, 2), '"-1.555"', Decimal("-1.56")),
        (pa.decimal128(38, 0), "9" * 38, Decimal("9" * 38)),
        (pa.date32(), '"1970-01-02"', 1),
        (pa.date32(), '"12370-01-01"', 146_097 * 26),
        (UTC, "5", 5_000_000),
        (UTC, '"1970-01-02T00:00:00.1234567+00:00"', DAY_US + 123_456),
        (UTC, '"1970-01-02T01:00:00 Europe/Berlin"', DAY_US),
        (LOCAL, '"1970-01-02 00:00"', DAY_US),
        (pa.string(), "0.12345678901234567890", "0.12345678901234567890"),
        (pa.string(), '{"x" : [1E2, null]}', '{"x":[100.0,null]}'),
        (pa.string(), r'"\ud83d\ude00"', "\U0001f600"),
        (pa.binary(), '"AQI="', b"\1\2"),
    ],
    ids=str,
)
def test_a_value_that_fits_is_that_value(kind: pa.DataType, text: str, value: object) -> None:
    assert one(kind, text) == value


def test_a_timestamp_without_a_zone_is_in_the_one_that_is_given() -> None:
    berlin = zone_of("Europe/Berlin")
    assert one(UTC, '"1970-07-01T01:00:00"', berlin) == 181 * DAY_US
    assert one(UTC, '"1970-07-01T01:00:00Z"', berlin) == 181 * DAY_US + DAY_US // 24
    assert one(LOCAL, '"1970-01-02"', berlin) == DAY_US


def test_what_follows_a_value_and_what_is_no_utf8_is_not_json() -> None:
    bodies = [b'{"a": 1} {"a": 2}', b'{"a": 1} x', b'{"a": 1, "b": "\xff"}', b' {"a": 1}\n']
    assert parsed(pa.array(bodies), STRUCT).to_pylist() == [None, None, None, {"a": 1}]


def test_a_field_that_is_needed_is_there_or_the_body_is_null() -> None:
    kind = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    bodies = [b'{"a": 1}', b'{"b": "x"}', b'{"a": null}', b'{"a": 1, "b": 2}', b'{"b": 2}']
    fits = {"a": 1, "b": None}
    assert parsed(pa.array(bodies), kind).to_pylist() == [
        fits,
        None,
        None,
        {"a": 1, "b": "2"},
        None,
    ]

"""Bodies that are JSON, as a column: what does not fit is null, whatever it is."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")

import pyarrow as pa

from cogwork.spark.json_bodies import parsed

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
        (LISTS, b"{}"),
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

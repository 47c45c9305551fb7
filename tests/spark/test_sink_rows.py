"""Rows become messages: the compiled encoder against the client's own messages."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from cogwork.amqp.errors import EncodeError
from cogwork.amqp.types import Symbol
from cogwork.dataplane.message.messages import Message
from cogwork.pipeline.spark.errors import OptionError
from cogwork.pipeline.spark.row_messages import FIELDS, encoded
from cogwork.pipeline.spark.write_options import write_options

TEXTS = [None, "", "a", "ü€𝄞", "x" * 255, "y" * 256, "z" * 70_000]

NAMES = {"address": "to"}


def text(rng: random.Random) -> str | None:
    return rng.choice(TEXTS)


def rows(rng: random.Random, count: int) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for _ in range(count):
        row: dict[str, object] = {name: text(rng) for name in FIELDS if name != "content_type"}
        row["content_type"] = rng.choice([None, "application/json"])
        keys = rng.sample(["a", "b", "c" * 300, "ü"], rng.randrange(4))
        row["properties"] = rng.choice([None, [(key, text(rng)) for key in keys]])
        row["body"] = rng.choice([None, b"", b"body", bytes(300)])
        made.append(row)
    return made


SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in FIELDS),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("body", pa.binary()),
    ]
)


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_encoded_as_the_client_would(seed: int) -> None:
    rng = random.Random(seed)
    given = rows(rng, 40)
    whole = pa.RecordBatch.from_pylist(given, schema=SCHEMA)
    first = rng.randrange(20)
    messages = encoded(whole.slice(first, 15))
    assert len(messages) == 15
    for row, data in zip(given[first:], messages, strict=False):
        message = Message.decode(data)
        for name in FIELDS:
            assert getattr(message, NAMES.get(name, name)) == row[name], f"seed {seed}"
        properties: list[tuple[str, object]] = row["properties"] or []  # type: ignore[assignment]  # a row holds anything
        assert dict(message.properties or {}) == dict(properties)
        assert message.body == row["body"]
    assert encoded(whole.slice(3, 0)) == []


def test_a_text_is_a_value_and_octets_are_data() -> None:
    texts = pa.RecordBatch.from_pydict({"body": pa.array(["ü", None])})
    assert [Message.decode(each).body for each in encoded(texts)] == ["ü", None]
    large = pa.RecordBatch.from_pydict({"body": pa.array([b"a"], pa.large_binary())})
    assert encoded(large) == [Message(b"a").encode()]


def test_a_content_type_is_ascii() -> None:
    batch = pa.RecordBatch.from_pydict({"content_type": ["ü"], "body": [b""]})
    with pytest.raises(EncodeError, match="a content-type is ASCII"):
        encoded(batch)
    fine = pa.RecordBatch.from_pydict({"content_type": ["text/plain"], "body": [b""]})
    assert Message.decode(encoded(fine)[0]).content_type == Symbol("text/plain")


BODY = StructField("body", BinaryType())
URL = {"url": "amqp://localhost"}


@pytest.mark.parametrize(
    ("options", "fields", "line"),
    [
        ({"address": "queue/a"}, [], "the option url is missing"),
        (URL, [], "rows need the option address, or a column of that name"),
        ({**URL, "address": "queue/a", "to": "x"}, [], "unknown option 'to'"),
        (
            {**URL, "address": "queue/a"},
            [StructField("key", StringType())],
            "a message has no column 'key': there are address, subject,",
        ),
        (
            {**URL, "address": "queue/a"},
            [StructField("subject", LongType())],
            "the column subject is to be string, not bigint",
        ),
        ({**URL, "address": "stream/a"}, [], "into a stream needs the option transactionId"),
        (
            {**URL, "address": "stream/a", "idempotencyColumns": "id"},
            [],
            "idempotencyColumns names 'id', which rows do not have",
        ),
        (
            {**URL, "address": "queue/a", "idempotencyColumns": "body"},
            [],
            "idempotencyColumns needs the option address, of a stream",
        ),
        (
            {**URL, "address": "stream/a", "idempotencyColumns": "body", "transactionId": "t"},
            [],
            "idempotencyColumns and transactionId cannot both be given",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(
    options: dict[str, str], fields: list[StructField], line: str
) -> None:
    with pytest.raises(OptionError) as caught:
        write_options(options, StructType([*fields, BODY]), is_streaming=False)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [LongType(), MapType(StringType(), StringType()), None])
def test_a_body_is_octets_or_text(kind: DataType | None) -> None:
    fields = [StructField("address", StringType())]
    fields += [] if kind is None else [StructField("body", kind)]
    with pytest.raises(OptionError, match="body"):
        write_options(URL, StructType(fields), is_streaming=True)

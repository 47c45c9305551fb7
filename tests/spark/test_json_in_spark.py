"""`body_json` beside Spark's own `from_json`, in one query over the same records."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from filled_streams import fill, source
from json_cases import random_body, random_type
from pyspark.sql.functions import expr, from_json
from pyspark.sql.types import DataType, StructType

import cogwork.testing
from cogwork.pipeline.spark.columns import SCHEMA
from cogwork.pipeline.spark.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TYPES = 8
BODIES = 500


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        yield url


def both(
    spark: SparkSession, url: str, stream: str, kind: str, zone: str = "UTC"
) -> list[tuple[Any, ...]]:
    """Read what bodies are for us and for Spark, which says by a column of its own what is unfit.

    All values are compared as Spark writes them: Python has no date after the year 9999.
    """
    rows = spark.read.format("cogwork").options(url=url, timeZone=zone)
    wrapped = "concat('{\"v\":', cast(body as string), '}')"
    schema = f"struct<v: {kind}, `corrupt`: string>"
    options = {"columnNameOfCorruptRecord": "corrupt", "timeZone": zone}
    found = (
        rows.schema(f"offset bigint, body binary, body_json {kind}")
        .load(stream)
        .withColumn("theirs", from_json(expr(wrapped), schema, options))
        .selectExpr(
            "cast(body as string)",
            "cast(struct(body_json) as string)",
            "cast(struct(if(theirs.corrupt is null, theirs.v, null)) as string)",
            "offset",
        )
    )
    return sorted((tuple(row) for row in found.collect()), key=lambda row: row[3])


def test_a_body_is_what_from_json_makes_of_it_or_null(
    spark: SparkSession, url: str, seed: int
) -> None:
    random = Random(seed)
    fits = 0
    for number in range(TYPES):
        kind = random_type(random)
        form = json.loads(DataType.fromDDL(kind).json())
        bodies = [random_body(random, form) for _ in range(BODIES)]
        fill(url, f"random-{number}", *[body.encode() for body in bodies])
        for body, ours, theirs, _ in both(spark, url, f"random-{number}", kind):
            assert ours == theirs, (kind, body)
            fits += ours != "{NULL}"
    assert fits > TYPES * BODIES / 10, "most of it fits"


def test_whole_bodies_are_what_from_json_makes_of_them(spark: SparkSession, url: str) -> None:
    bodies = [b'{"a": 1}', b"{}", b'[{"a": 2}, null]', b"[]", b" ", b"null", b"7", b'{"a": {}}']
    fill(url, "whole", *bodies)
    table = spark.read.format("cogwork").option("url", url)
    for kind in ("array<struct<a: bigint>>", "map<string,bigint>", "array<bigint>"):
        rows = table.schema(f"offset bigint, body binary, body_json {kind}").load("whole")
        found = rows.withColumn("theirs", from_json(expr("cast(body as string)"), kind)).collect()
        assert [row.body_json for row in found] == [
            None if b"{}" in row.body and len(row.body) > 2 and "struct" in kind else row.theirs
            for row in found
        ], kind


def test_timestamps_are_in_the_time_zone_that_is_named(spark: SparkSession, url: str) -> None:
    moments = [
        "2024-07-01T12:00:00",
        "2024-03-31T02:30:00",
        "2024-10-27 02:30",
        "2024-07-01T12:00Z",
    ]
    fill(url, "zones", *[json.dumps({"t": moment}).encode() for moment in moments])
    for zone in ("Europe/Berlin", "+05:30", "PST"):
        for _, ours, theirs, _ in both(spark, url, "zones", "struct<t: timestamp>", zone):
            assert ours == theirs


def test_types_that_nothing_in_json_is_read_as_are_refused() -> None:
    for ddl, told in (
        ("struct<a: interval day to second>", r"body_json\.a cannot be interval day to second"),
        (
            "array<struct<a: variant>>",
            r"body_json\[\]\.a cannot be variant \(expected one of boolean",
        ),
        ("map<bigint,string>", r"body_json: the keys of a map are string, not bigint"),
        ("struct<a: int, a: int>", r"body_json has a field twice: a, a"),
        ("struct<a: int> not null", r"body_json is null where a body does not fit"),
    ):
        schema = StructType.fromDDL(f"body_json {ddl}")
        assert isinstance(schema, StructType)
        with pytest.raises(OptionError, match=told):
            source("amqp://localhost", stream="s").reader(schema)
    with pytest.raises(
        OptionError, match=r"timeZone: 'Mars' is no time zone \(expected one such as"
    ):
        source("amqp://localhost", stream="s", timeZone="Mars").reader(SCHEMA)

"""The source in Spark itself: found without registering, planned, pruned, narrowed, restarted."""

from __future__ import annotations

from shutil import rmtree
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from pyspark.sql.functions import col

import cogwork.sync
import cogwork.testing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container('[[stream]]\naddress = "stream/flights"\n') as url:
        with cogwork.sync.connect(url) as client:
            client.stream("flights").append([b"%d" % n for n in range(1000)])
        yield url


def flights(spark: SparkSession, url: str, schema: str, **options: str) -> DataFrame:
    reader = spark.read.format("cogwork").option("url", url).schema(schema)
    return reader.options(**options).load("flights")


def test_a_stream_is_a_table(spark: SparkSession, url: str) -> None:
    table = spark.read.format("cogwork").option("url", url).option("stream", "flights").load()
    assert table.columns[:4] == ["stream", "offset", "time", "producer"]
    found = table.selectExpr("count(*)", "sum(cast(cast(body as string) as int))", "max(offset)")
    assert tuple(found.collect()[0]) == (1000, sum(range(1000)), 999)
    first = table.orderBy("offset").first()
    assert first is not None
    parsed = flights(spark, url, "body_json struct<a: bigint, b: array<string>>, body binary")
    assert parsed.where("body_json is null and body is not null").count() == 1000
    assert (first.stream, first.sequence, first.properties) == ("flights", 0, {})


def test_filters_that_are_pushed_narrow_the_range(spark: SparkSession, url: str) -> None:
    wanted = flights(spark, url, "offset bigint", pushdown="true", minPartitions="1000")
    few = wanted.where((col("offset") >= 10) & (col("offset") < 13))
    assert sorted(row.offset for row in few.collect()) == [10, 11, 12]
    assert few.rdd.getNumPartitions() <= 3


def test_a_query_goes_on_where_its_checkpoint_says(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    seen: list[tuple[int, int, int]] = []

    def note(batch: DataFrame, batch_id: int) -> None:
        row = batch.selectExpr("count(*)", "min(offset)").collect()[0]
        seen.append((batch_id, row[0], row[1]))

    def run() -> None:
        stream = spark.readStream.format("cogwork").option("url", url).schema("offset bigint")
        query = (
            stream.options(stream="flights", startingOffsets="earliest", maxOffsetsPerTrigger="400")
            .load()
            .writeStream.foreachBatch(note)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    run()
    assert seen == [(0, 400, 0), (1, 400, 400), (2, 200, 800)]
    with cogwork.sync.connect(url) as client:
        client.stream("flights").append([b"0"] * 5)
    run()
    assert seen[3:] == [(3, 5, 1000)]
    rmtree(tmp_path / "checkpoint")
    run()
    assert seen[4:] == [(0, 400, 0), (1, 400, 400), (2, 205, 800)], "it starts all over"


def test_what_goes_wrong_is_one_line_in_spark_too(spark: SparkSession, url: str) -> None:
    from cogwork.pipeline.spark.lines import line_of_spark  # noqa: PLC0415 # not before it is needed

    with pytest.raises(Exception, match="no stream nowhere") as caught:
        spark.read.format("cogwork").option("url", url).load("nowhere").count()
    assert line_of_spark(caught.value) == "there is no stream nowhere"
    with pytest.raises(Exception, match="unknown option") as refused:
        spark.read.format("cogwork").options(url=url, streams="x").load().count()
    assert (line_of_spark(refused.value) or "").startswith("unknown option 'streams'")

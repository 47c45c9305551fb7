"""The sink in Spark itself: each row once, whatever is done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.arrow import ArrowClient
from cogwork.pipeline.spark.lines import line_of_spark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

STREAMS = "".join(f'[[stream]]\naddress = "stream/{name}"\n' for name in ("in", "b", "c"))


@pytest.fixture
def url() -> Iterator[str]:
    with cogwork.testing.container(STREAMS) as url:
        yield url


def bodies(url: str, stream: str) -> list[bytes]:
    with ArrowClient(url) as client:
        first, following = client.bounds(stream)
        return [
            body
            for batch in client.read(stream, first, following, ["body"])
            for body in batch.column("body").to_pylist()
        ]


def test_a_batch_that_is_written_again_is_there_once(spark: SparkSession, url: str) -> None:
    rows = spark.range(0, 1000, 1, 2).selectExpr("cast(id as string) as body", "'s' as subject")
    writer = rows.write.format("cogwork").mode("append")
    for _ in range(2):
        writer.options(url=url, transactionId="t1").save("stream/b")
    assert sorted(map(int, bodies(url, "b"))) == list(range(1000))
    writer.options(url=url, transactionId="t2").save("stream/b")
    assert len(bodies(url, "b")) == 2000
    empty = rows.where("id < 0").write.format("cogwork").mode("append")
    empty.options(url=url, transactionId="t3").save("stream/b")
    with pytest.raises(Exception, match="no column 'id'") as caught:
        rows.selectExpr("body", "1 as id").write.format("cogwork").mode("append").options(
            url=url, transactionId="t4"
        ).save("stream/b")
    assert (line_of_spark(caught.value) or "").startswith("a message has no column 'id': there are")


def test_a_transaction_with_another_partitioning_is_refused(spark: SparkSession, url: str) -> None:
    rows = spark.range(0, 1000, 1, 4).selectExpr("cast(id as string) as body")
    options = {"url": url, "transactionId": "t"}
    rows.write.format("cogwork").mode("append").options(**options).save("stream/b")
    for other in (rows.coalesce(2), rows.repartition(3), rows.repartition(9), rows.coalesce(1)):
        with pytest.raises(Exception, match="transactionId") as caught:
            other.write.format("cogwork").mode("append").options(**options).save("stream/b")
        assert (line_of_spark(caught.value) or "").startswith(
            "transactionId 't' was used before for other rows, or for other partitions (row "
        )
        assert len(bodies(url, "b")) == 1000
    rows.write.format("cogwork").mode("append").options(**options).save("stream/b")
    assert sorted(map(int, bodies(url, "b"))) == list(range(1000))


def test_a_batch_whose_commit_was_lost_is_there_once(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """A driver that dies between the rows' last acceptance and Spark's note of it does this."""
    with cogwork.sync.connect(url) as mesh:
        mesh.stream("in").append([b"%d" % number for number in range(3000)])
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        rows = (
            spark.readStream.format("cogwork")
            .options(url=url, startingOffsets="earliest", maxOffsetsPerTrigger="1000")
            .schema("body binary")
            .load("in")
        )
        query = (
            rows.writeStream.format("cogwork")
            .options(url=url, path="stream/c", checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    run()
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink()
    run()
    assert sorted(map(int, bodies(url, "c"))) == list(range(3000))

"""A query goes on where its container does not: killed, and away for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from kept_container import AWAY_S, Kept

import cogwork.sync
from cogwork.pipeline.arrow import ArrowClient

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.timeout(120 + 2 * AWAY_S)
def test_a_query_goes_on_where_the_container_comes_back(
    spark: SparkSession, kept: Kept, tmp_path: Path
) -> None:
    with cogwork.sync.connect(kept.url) as mesh:
        mesh.stream("s").append([b"%d" % number for number in range(100)])
    query = (
        spark.readStream.format("cogwork")
        .options(url=kept.url, startingOffsets="earliest", maxOffsetsPerTrigger="30")
        .schema("body binary")
        .load("s")
        .writeStream.format("cogwork")
        .options(url=kept.url, path="stream/t", checkpointLocation=str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        wait_for(kept, 100)
        kept.kill()
        time.sleep(AWAY_S)
        kept.start()
        with cogwork.sync.connect(kept.url) as mesh:
            mesh.stream("s").append([b"%d" % number for number in range(100, 200)])
        wait_for(kept, 200)
        assert query.isActive
    finally:
        query.stop()
    with ArrowClient(kept.url) as client:
        batches = client.read("t", *client.bounds("t"), ["body"])
        found = [int(body) for batch in batches for body in batch.column("body").to_pylist()]
    assert sorted(found) == list(range(200))


def wait_for(kept: Kept, count: int) -> None:
    until_s = time.monotonic() + 100
    with ArrowClient(kept.url) as client:
        while client.bounds("t").next < count:
            assert time.monotonic() < until_s
            time.sleep(0.05)

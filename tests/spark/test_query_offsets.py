"""A batch that is run again by another driver reads what the first one had planned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from filled_streams import fill, manage, stream_reader, trim
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.spark.errors import DataLoss
from cogwork.pipeline.spark.lines import line_of_spark
from cogwork.pipeline.spark.query_offsets import STARTS, offset_of, positions_in, starts_in
from cogwork.pipeline.spark.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from cogwork.pipeline.spark.query_offsets import Offset

ALL = ReadAllAvailable()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        yield url


def append(url: str, stream: str, rows: int) -> None:
    with cogwork.sync.connect(url) as client:
        client.stream(stream).append([b"x"] * rows)


def planned(url: str, options: dict[str, str], start: Offset | None = None) -> Offset:
    """Return what a driver has Spark keep of a batch; the first one where no start is given."""
    reader = stream_reader(url, **options)
    end = reader.latestOffset(reader.initialOffset() if start is None else start, ALL)
    reader.stop()
    return kept(end)


def again(
    url: str, options: dict[str, str], end: Offset, start: Offset | None = None
) -> list[Range]:
    """Return what another driver reads that finds the batch in the checkpoint."""
    reader = stream_reader(url, **options)
    try:
        before = reader.initialOffset() if start is None else start
        return [each.range for each in reader.partitions(before, end)]
    finally:
        reader.stop()


def kept(offset: Offset) -> Offset:
    found: Offset = json.loads(json.dumps(offset))
    return found


def test_an_offset_has_starts_only_where_there_are_some() -> None:
    assert offset_of({"a": 5}, {}) == {"a": 5}
    offset = offset_of({"a": 5, "b": 2}, {"b": 1})
    assert (positions_in(offset), starts_in(offset)) == ({"a": 5, "b": 2}, {"b": 1})
    assert starts_in({"a": 5}) == {}


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_first_batch_from_the_latest_reads_the_same_again(url: str, fails: str) -> None:
    stream = f"latest-{fails}"
    options = {"stream": stream, "startingOffsets": "latest", "failOnDataLoss": fails}
    fill(url, stream, *[b"old"] * 10)
    reader = stream_reader(url, **options)
    start = reader.initialOffset()
    append(url, stream, 5)
    reader.stop()
    end = kept(reader.latestOffset(start, ALL))
    reader.stop()
    append(url, stream, 5)
    assert again(url, options, end) == [Range(stream, 10, 15)]


def test_a_first_batch_that_was_empty_is_empty_again(url: str) -> None:
    options = {"stream": "empty", "startingOffsets": "latest", "failOnDataLoss": "false"}
    fill(url, "empty", *[b"old"] * 10)
    end = planned(url, options)
    append(url, "empty", 5)
    assert again(url, options, end) == []
    assert again(url, options, planned(url, options, end), end) == [Range("empty", 10, 15)]


def test_what_a_first_batch_has_lost_meanwhile_is_an_error(url: str) -> None:
    """Other rows under the numbers of the task would be taken for repeats by a stream."""
    options = {"stream": "lost", "startingOffsets": "earliest"}
    fill(url, "lost", *[b"x"] * 10)
    end = planned(url, options)
    trim(url, "lost", 4)
    with pytest.raises(DataLoss, match="records from 0 to before 4 have been given up"):
        again(url, options, end)
    assert again(url, {**options, "failOnDataLoss": "false"}, end) == [Range("lost", 4, 10)]


def test_what_a_new_stream_of_a_pattern_has_lost_meanwhile_is_an_error(url: str) -> None:
    options = {"streamPattern": "several-*", "startingOffsets": "earliest"}
    fill(url, "several-a", b"a")
    start = planned(url, options)
    fill(url, "several-b", *[b"b"] * 10)
    end = planned(url, options, start)
    assert again(url, options, end, start) == [Range("several-b", 0, 10)]
    trim(url, "several-b", 4)
    with pytest.raises(DataLoss, match="stream several-b: the records from 0 to before 4"):
        again(url, options, end, start)


def test_a_stream_that_was_made_anew_is_read_from_the_same_record_again(url: str) -> None:
    options = {"stream": "anew", "startingOffsets": "earliest", "failOnDataLoss": "false"}
    fill(url, "anew", *[b"x"] * 5)
    start = planned(url, options)
    manage(url, "DELETE", "anew")
    fill(url, "anew", b"y", b"z")
    end = planned(url, options, start)
    append(url, "anew", 10)
    assert again(url, options, end, start) == [Range("anew", 0, 2)]


def test_a_trigger_that_has_nothing_new_keeps_its_text(url: str) -> None:
    """Spark compares texts, and runs an empty batch where they differ."""
    options = {"streamPattern": "still-*", "startingOffsets": "earliest"}
    fill(url, "still-b", *[b"x"] * 5)
    start = planned(url, options)
    assert json.dumps(planned(url, options, start)) == json.dumps(start)
    fill(url, "still-a", b"x")
    later = planned(url, options, start)
    assert later == {"still-a": 1, "still-b": 5, STARTS: {"still-a": 0}}
    assert json.dumps(planned(url, options, later)) == json.dumps(later)


def test_an_offset_of_an_older_checkpoint_is_read_as_it_was(url: str) -> None:
    options = {"stream": "older", "startingOffsets": "earliest"}
    fill(url, "older", *[b"x"] * 10)
    assert again(url, options, {"older": 4}) == [Range("older", 0, 4)]
    assert again(url, options, {"older": 6}, {"older": 4}) == [Range("older", 4, 6)]
    assert planned(url, options, {"older": 4}) == {"older": 10}
    lenient = {**options, "failOnDataLoss": "false"}
    anew = again(url, lenient, {"older": 10}, {"older": 500})
    assert anew == [Range("older", 0, 10)], "what was there has been deleted"
    latest = {**lenient, "startingOffsets": "latest"}
    assert again(url, latest, {"older": 4}) == [], "where it started nobody knows"


def test_an_end_that_is_like_the_beginning_is_not_taken_for_it(url: str) -> None:
    """Started again, a query from the latest is asked for its beginning, too."""
    options = {"stream": "same"}
    fill(url, "same", *[b"x"] * 10)
    reader = stream_reader(url, **options)
    assert positions_in(reader.initialOffset()) == {"same": 10}
    assert reader.latestOffset({"same": 10}, ALL) == {"same": 10}
    reader.stop()


def test_a_limit_that_goes_on_needs_no_starts(url: str) -> None:
    options = {"stream": "limited", "startingOffsets": "earliest"}
    fill(url, "limited", *[b"x"] * 10)
    reader = stream_reader(url, **options)
    first = reader.latestOffset(reader.initialOffset(), ReadMaxRows(4))
    second = reader.latestOffset(first, ReadMaxRows(4))
    assert (first, second) == ({"limited": 4, STARTS: {"limited": 0}}, {"limited": 8})
    reader.stop()


def test_spark_runs_a_first_batch_again_from_where_it_was_planned(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    fill(url, "failed", *[b"x"] * 10)
    seen: list[list[int]] = []

    def fail_once(batch: DataFrame, _batch_id: int) -> None:
        seen.append(sorted(row.offset for row in batch.collect()))
        if len(seen) == 1:
            raise RuntimeError("the database is away")

    def run(fails: str) -> str | None:
        query = (
            spark.readStream.format("cogwork")
            .options(url=url, startingOffsets="earliest", failOnDataLoss=fails)
            .schema("offset bigint")
            .load("failed")
            .writeStream.foreachBatch(fail_once)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination(60)
        except Exception as error:  # Spark's, of several kinds
            return line_of_spark(error)
        return None

    assert "the database is away" in str(run("true"))
    kept_line = (tmp_path / "offsets" / "0").read_text().splitlines()[-1]
    assert json.loads(kept_line) == {"failed": 10, STARTS: {"failed": 0}}
    trim(url, "failed", 4)
    assert "the records from 0 to before 4 have been given up" in str(run("true"))
    append(url, "failed", 2)
    assert run("false") is None
    assert seen == [list(range(10)), [4, 5, 6, 7, 8, 9], [10, 11]]

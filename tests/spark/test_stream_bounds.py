"""What is decided by what streams hold, where they grow while the driver asks."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from filled_streams import TWO, columns, fill, source, stream_reader
from pyspark.sql.datasource import GreaterThanOrEqual
from pyspark.sql.streaming.datasource import ReadMaxRows

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.arrow import ArrowClient, Bounds
from cogwork.pipeline.spark.bounds import FRESH_S, StreamBounds
from cogwork.pipeline.spark.query_offsets import beginning_at
from cogwork.pipeline.spark.ranges import Range
from cogwork.pipeline.spark.read_options import read_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        yield url


def let_grow(url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have each answer be old when it comes, and the stream longer; return who was asked about."""
    asked: list[str] = []
    ask = ArrowClient.bounds

    def bounds(client: ArrowClient, stream: str) -> Bounds:
        asked.append(stream)
        with cogwork.sync.connect(url) as mesh:
            mesh.stream(stream).append([b"more"])
        return ask(client, stream)

    monkeypatch.setattr(ArrowClient, "bounds", bounds)
    seconds = count()
    hurried = partial(StreamBounds, monotonic_s=lambda: float(next(seconds)))
    for module in ("source", "stream_source"):
        monkeypatch.setattr(f"cogwork.pipeline.spark.{module}.StreamBounds", hurried)
    return asked


def test_what_a_batch_reads_is_of_one_answer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(url, "batch", b"a")
    asked = let_grow(url, monkeypatch)
    options = read_options({"url": url, "stream": "batch"}, is_streaming=False)
    seconds = count()
    bounds = StreamBounds(options, lambda: float(next(seconds)))
    assert bounds.ranges() == [Range("batch", 0, 2)]
    bounds.close()
    assert asked == ["batch"]


def test_what_filters_leave_is_of_that_answer_too(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url, "filtered", b"a")
    asked = let_grow(url, monkeypatch)
    reader: Any = source(url, stream="filtered", pushdown="true").reader(columns(TWO))
    list(reader.pushFilters([GreaterThanOrEqual(("time",), datetime(2000, 1, 1, tzinfo=UTC))]))
    assert [each.range for each in reader.partitions()] == [Range("filtered", 0, 2)]
    assert asked == ["filtered"]


def test_where_a_query_starts_is_of_one_answer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(url, "query", b"a")
    asked = let_grow(url, monkeypatch)
    reader = stream_reader(url, stream="query")
    assert reader.initialOffset() == beginning_at({"query": 2})
    assert asked == ["query"]
    reader.stop()


def test_an_answer_that_took_long_is_fresh_when_it_comes(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url, "far", b"a")
    now_s = [0.0]
    asked = []

    def bounds(_client: ArrowClient, stream: str) -> Bounds:
        asked.append(stream)
        now_s[0] += 2 * FRESH_S
        return Bounds(0, 1)

    monkeypatch.setattr(ArrowClient, "bounds", bounds)
    options = read_options({"url": url, "stream": "far"}, is_streaming=True)
    far = StreamBounds(options, lambda: now_s[0])
    assert far.of_all() is far.of_all()
    assert asked == ["far"]
    now_s[0] += 2 * FRESH_S
    far.of_all()
    assert asked == ["far", "far"]
    far.close()


def test_no_trigger_is_planned_beyond_a_streams_end(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url, "belt", b"a", b"b")

    def generous(lags: Mapping[str, int], limit: int) -> dict[str, int]:
        return {name: lag + limit for name, lag in lags.items()}

    monkeypatch.setattr("cogwork.pipeline.spark.stream_source.shares", generous)
    reader = stream_reader(url, stream="belt", startingOffsets="earliest")
    assert reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))["belt"] == 2
    reader.stop()


def test_a_query_that_ends_is_not_planned_beyond_a_stream_that_was_cut(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url, "cut", b"a", b"b")
    reader = stream_reader(url, stream="cut", startingOffsets="0", failOnDataLoss="false")
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    reader.stop()
    monkeypatch.setattr(ArrowClient, "bounds", lambda *_: Bounds(0, 1))
    assert reader.latestOffset(start, ReadMaxRows(5))["cut"] == 1
    reader.stop()

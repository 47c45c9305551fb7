"""The readers as plain objects against a container: no JVM."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from filled_streams import TWO, columns, fill, manage, rows_of, source, stream_reader, trim
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, LessThan
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructField, StructType

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.spark.columns import SCHEMA
from cogwork.pipeline.spark.errors import DataLoss, OptionError, SourceError
from cogwork.pipeline.spark.query_offsets import STARTS, beginning_at
from cogwork.pipeline.spark.read_options import read_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import DataType


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as url:
        yield url


def read(url: str, names: tuple[str, ...] = TWO, **options: str) -> list[tuple[Any, ...]]:
    reader = source(url, **options).reader(columns(names))
    return rows_of(reader, reader.partitions())


def test_a_batch_reads_the_columns_that_the_schema_names(url: str) -> None:
    fill(url, "plain", b"a", b"b", b"c")
    assert read(url, stream="plain") == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert read(url, ("body", "stream"), stream="plain")[2] == (b"c", "plain")
    everything = read(url, tuple(SCHEMA.fieldNames()), stream="plain")
    assert len(everything[0]) == 13
    assert everything[0][2].tzinfo is not None


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("sender", StringType(), "a stream has no column 'sender'"),
        ("offset", StringType(), "the column offset is bigint, not string"),
    ],
)
def test_a_schema_that_no_stream_has_is_one_line(
    url: str, name: str, kind: DataType, line: str
) -> None:
    with pytest.raises(OptionError, match=line):
        source(url, stream="x").reader(StructType([StructField(name, kind)]))


def test_ranges_by_offset_and_time_and_pattern(url: str) -> None:
    fill(url, "ranges-a", *[b"%d" % n for n in range(10)])
    fill(url, "ranges-b", b"x")
    found = read(url, stream="ranges-a", startingOffsets="3", endingOffsets="5")
    assert [row[0] for row in found] == [3, 4]
    assert read(url, stream="ranges-a", startingOffsets="latest") == []
    assert len(read(url, streamPattern="ranges-*")) == 11
    fill(url, "$ranges-of-the-mesh", b"y")
    assert len(read(url, streamPattern="*ranges-*")) == 11
    assert read(url, streamPattern="$ranges*") == [(0, b"y")]
    starts = '{"ranges-a": 9, "ranges-b": -2}'
    assert read(url, stream="ranges-a,ranges-b", startingOffsets=starts) == [(9, b"9"), (0, b"x")]
    assert read(url, stream="ranges-a", startingTimestamp="2000-01-01")[0] == (0, b"0")
    assert read(url, stream="ranges-a", endingTimestamp="2000-01-01") == []
    pieces = source(url, stream="ranges-a", minPartitions="4").reader(columns(TWO))
    assert len(pieces.partitions()) == 4
    assert len(rows_of(pieces, pieces.partitions())) == 10


def test_json_is_parsed_and_what_does_not_fit_is_null(url: str) -> None:
    given = [b'{"a": 1, "b": "x", "c": []}', b"{}", b"no json", b'{"a": "text"}', b'{"a": 2}', b"7"]
    fill(url, "json", *given)
    kind = StructType([StructField("a", LongType()), StructField("b", StringType())])
    schema = StructType([StructField("body_json", kind), SCHEMA["offset"], SCHEMA["body"]])
    reader = source(url, stream="json").reader(schema)
    found = rows_of(reader, reader.partitions())
    assert [row[0] for row in found] == [
        {"a": 1, "b": "x"},
        {"a": None, "b": None},
        None,
        None,
        {"a": 2, "b": None},
        None,
    ]
    assert [row[2] for row in found] == given
    only = source(url, stream="json", endingOffsets="1").reader(StructType([schema[0]]))
    assert rows_of(only, only.partitions()) == [({"a": 1, "b": "x"},)]
    with pytest.raises(OptionError, match="no column 'body_json'"):
        source(url, stream="json").reader(StructType([StructField("body_json", StringType())]))


def test_an_unknown_stream_is_one_line(url: str) -> None:
    with pytest.raises(SourceError, match=r"there is no stream nowhere$"):
        read(url, stream="nowhere")


def test_offsets_out_of_range_are_an_error_or_are_cut(url: str) -> None:
    fill(url, "short", b"a", b"b")
    with pytest.raises(DataLoss, match="offset 9 is beyond its end, 2"):
        read(url, stream="short", endingOffsets="9")
    found = read(url, stream="short", endingOffsets="9", failOnDataLoss="false")
    assert found == [(0, b"a"), (1, b"b")]
    with pytest.raises(SourceError, match="from 2 to before 1, which is nothing"):
        read(url, stream="short", startingOffsets="2", endingOffsets="1")


@pytest.mark.parametrize("place", ["500", '{"/stream/beyond": 500}'])
def test_a_start_beyond_the_end_is_an_error_or_nothing(url: str, place: str) -> None:
    if place == "500":
        fill(url, "beyond", b"a", b"b", b"c")
    with pytest.raises(DataLoss, match=r"^stream beyond: offset 500 is beyond its end, 3 \(failOn"):
        read(url, stream="beyond", startingOffsets=place)
    assert read(url, stream="beyond", startingOffsets=place, failOnDataLoss="false") == []
    with pytest.raises(DataLoss, match="offset 500 is beyond its end, 3"):
        read(url, stream="beyond", startingOffsets=place, endingOffsets="2")
    assert read(url, stream="beyond", startingOffsets="3") == [], "the end itself is none"


@pytest.mark.parametrize(
    "options",
    [
        {"stream": "/stream/named"},
        {"path": "/stream/named"},
        {"stream": "stream/named, /stream/named,named"},
        {"streamPattern": "/stream/name*"},
        {"stream": "named", "startingOffsets": '{"/stream/named": 0}'},
    ],
    ids=str,
)
def test_a_stream_may_be_named_by_its_address(url: str, options: dict[str, Any]) -> None:
    if options == {"stream": "/stream/named"}:
        fill(url, "named", b"a")
    assert read(url, **options) == [(0, b"a")]


def test_bytes_of_a_trigger_may_have_a_unit() -> None:
    def bytes_max(text: str) -> int | None:
        options = {"url": "amqp://localhost", "stream": "s", "maxBytesPerTrigger": text}
        return read_options(options, is_streaming=True).bytes_max

    assert [bytes_max(text) for text in ("7", "7b", "512k", "20m", "20MB", "1 g", "2t", "1p")] == [
        *(7, 7, 512 << 10, 20 << 20, 20 << 20, 1 << 30, 2 << 40, 1 << 50)
    ]
    for text in ("", "0", "0m", "m", "1.5m", "-1k", "20mm", "20 mega", "9999999p", "1e3", "\u0661"):
        with pytest.raises(
            OptionError, match=r"is not a size \(expected bytes above 0, or such as|is too large"
        ):
            bytes_max(text)


def test_trimmed_records_are_an_error_or_are_left_out(url: str) -> None:
    fill(url, "trimmed", *[b"%d" % n for n in range(5)])
    reader = source(url, stream="trimmed").reader(columns(TWO))
    lenient = source(url, stream="trimmed", failOnDataLoss="false").reader(columns(TWO))
    planned = reader.partitions()
    trim(url, "trimmed", 3)
    with pytest.raises(DataLoss, match="records from 0 to before 3 have been given up"):
        rows_of(reader, planned)
    assert rows_of(lenient, planned) == [(3, b"3"), (4, b"4")]
    with pytest.raises(DataLoss, match="failOnDataLoss=false goes on"):
        read(url, stream="trimmed", startingOffsets="1")
    assert read(url, stream="trimmed") == [(3, b"3"), (4, b"4")]


def test_filters_narrow_what_is_read(url: str) -> None:
    fill(url, "filtered", *[b"%d" % n for n in range(100)])
    reader: Any = source(url, stream="filtered", pushdown="true").reader(columns(TWO))
    filters = [GreaterThanOrEqual(("offset",), 10), LessThan(("offset",), 12)]
    assert list(reader.pushFilters(filters)) == filters, "Spark applies them all the same"
    assert rows_of(reader, reader.partitions()) == [(10, b"10"), (11, b"11")]
    at = datetime(2000, 1, 1, tzinfo=UTC)
    assert list(reader.pushFilters([LessThan(("time",), at)]))
    assert reader.partitions() == []
    other: Any = source(url, stream="filtered", pushdown="true").reader(columns(TWO))
    assert list(other.pushFilters([EqualTo(("stream",), "another")]))
    assert other.partitions() == []


# -- streaming


def test_a_query_reads_trigger_by_trigger(url: str) -> None:
    fill(url, "live", *[b"%d" % n for n in range(10)])
    reader = stream_reader(url, stream="live", startingOffsets="earliest", maxOffsetsPerTrigger="4")
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    assert (start, limit) == (beginning_at({"live": 0}), ReadMaxRows(4))
    end = reader.latestOffset(start, limit)
    assert end == {"live": 4, STARTS: {"live": 0}}, "no batch before it says where it starts"
    assert [row[0] for row in rows_of(reader, reader.partitions(start, end))] == [0, 1, 2, 3]
    assert reader.latestOffset(end, ReadAllAvailable()) == {"live": 10}, "one is before it"
    assert reader.reportLatestOffset() == {"live": 10}
    assert reader.partitions(end, end) == []
    reader.stop()


def test_without_a_place_a_query_starts_with_what_comes(url: str) -> None:
    fill(url, "latest", b"a")
    reader = stream_reader(url, stream="latest")
    assert reader.initialOffset() == beginning_at({"latest": 1})
    with cogwork.sync.connect(url) as client:
        client.stream("latest").append([b"b"])
    assert reader.initialOffset() == beginning_at({"latest": 1}), (
        "it is asked twice, and must not move"
    )
    reader.stop()


def test_a_trigger_is_limited_by_bytes(url: str) -> None:
    fill(url, "bytes", *[bytes(1000)] * 50)
    reader = stream_reader(
        url, stream="bytes", startingOffsets="earliest", maxBytesPerTrigger="10000"
    )
    assert reader.getDefaultReadLimit() == ReadMaxBytes(10_000)
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert 5 <= end["bytes"] <= 10
    reader.stop()


def test_available_now_ends_with_what_there_was(url: str) -> None:
    fill(url, "ending", b"a", b"b")
    reader = stream_reader(url, stream="ending", startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    with cogwork.sync.connect(url) as client:
        client.stream("ending").append([b"c"])
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end == {"ending": 2, STARTS: {"ending": 0}}
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    reader.stop()


def test_a_new_stream_of_a_pattern_is_read_from_its_beginning(url: str) -> None:
    fill(url, "many-a", b"a")
    reader = stream_reader(url, streamPattern="many-*", startingOffsets="earliest")
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    reader.stop()
    fill(url, "many-b", b"b")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {"many-a": 1, "many-b": 1, STARTS: {"many-b": 0}}
    assert rows_of(reader, reader.partitions(start, end)) == [(0, b"b")]
    reader.stop()


def test_a_stream_that_was_made_anew_is_noticed(url: str) -> None:
    fill(url, "anew", b"a", b"b", b"c")
    reader = stream_reader(url, stream="anew", startingOffsets="earliest")
    lenient = stream_reader(url, stream="anew", failOnDataLoss="false")
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    manage(url, "DELETE", "anew")
    fill(url, "anew", b"z")
    reader.stop()
    with pytest.raises(DataLoss, match="offset 3 is beyond its end, 1"):
        reader.latestOffset(start, ReadAllAvailable())
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert rows_of(lenient, lenient.partitions(start, end)) == [(0, b"z")]
    reader.stop()
    lenient.stop()

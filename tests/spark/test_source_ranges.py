"""What the source decides on the driver: options, ranges, limits; without a JVM."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from cogwork.pipeline.spark.errors import OptionError
from cogwork.pipeline.spark.ranges import GRAIN, ROWS_MAX, Range, cut_all, shares
from cogwork.pipeline.spark.read_options import read_options
from cogwork.pipeline.spark.words import EARLIEST, LATEST

URL = {"url": "amqp://localhost"}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"stream": "s"}, "the option url is missing"),
        (URL, "one of the options stream and streamPattern is needed"),
        ({**URL, "stream": "a", "streamPattern": "a*"}, "one of the options stream"),
        ({**URL, "stream": " , "}, "the option stream names no stream"),
        ({**URL, "stream": "a", "startingOffset": "3"}, "unknown option 'startingOffset'"),
        ({**URL, "stream": "a", "startingOffsets": "soon"}, "startingOffsets is earliest, latest,"),
        ({**URL, "stream": "a", "startingOffsets": '{"a": -3}'}, "startingOffsets is earliest"),
        ({**URL, "stream": "a", "startingOffsets": "[" * 5000}, "startingOffsets is earliest"),
        ({**URL, "stream": "a", "minPartitions": "0"}, "minPartitions is a whole number above 0"),
        *(
            ({**URL, "stream": "a", name: text}, f"{name} is ")
            for name in (
                *("startingOffsets", "endingOffsets", "startingTimestamp", "endingTimestamp"),
                *("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minPartitions", "timeoutSeconds"),
            )
            for text in (str(2**63), "9" * 5000)
        ),
        *(
            ({**URL, "stream": "a", "startingOffsets": text}, "startingOffsets is earliest")
            for text in (f'{{"a": {2**63}}}', '{"a": ' + "9" * 5000 + "}")
        ),
        ({**URL, "stream": "a", "failOnDataLoss": "no"}, "failOnDataLoss is true or false"),
        ({**URL, "stream": "a", "startingTimestamp": "noon"}, "startingTimestamp is in millis"),
        (
            {**URL, "stream": "a", "startingTimestamp": "1", "startingOffsets": "1"},
            "startingOffsets and startingTimestamp cannot both be given",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(options: dict[str, str], line: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(options, is_streaming=False)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_number_is_as_large_as_an_offset_can_be() -> None:
    largest = str(2**63 - 1)
    given = {"startingOffsets": largest, "maxOffsetsPerTrigger": largest.zfill(5000)}
    found = read_options({**URL, "stream": "a", **given}, is_streaming=False)
    assert (found.start.in_stream("a"), found.rows_max) == (2**63 - 1, 2**63 - 1)
    zeros = {"startingOffsets": "0" * 5000, "endingTimestamp": "0"}
    found = read_options({**URL, "stream": "a", **zeros}, is_streaming=False)
    assert (found.start.in_stream("a"), found.end.time_us) == (0, 0)


def test_a_streaming_query_has_no_end() -> None:
    with pytest.raises(OptionError, match="endingOffsets is for a batch"):
        read_options({**URL, "stream": "a", "endingOffsets": "9"}, is_streaming=True)


def test_options_are_read_as_kafkas_are() -> None:
    found = read_options(
        {
            **URL,
            "stream": "stream/a, b",
            "startingOffsets": '{"a": 23, "stream/b": -1}',
            "endingTimestamp": "2026-11-20T06:00",
        },
        is_streaming=False,
    )
    assert found.names == ("a", "b")
    assert (found.start.in_stream("a"), found.start.in_stream("b")) == (23, LATEST)
    assert found.start.in_stream("new") == EARLIEST
    at = datetime(2026, 11, 20, 6, tzinfo=UTC)
    assert found.end.time_us == int(at.timestamp()) * 1_000_000
    assert read_options({**URL, "stream": "a"}, is_streaming=True).start.offset == LATEST


@pytest.mark.parametrize(
    ("first", "last", "wanted"), [(0, 1, None), (5, 25, 4), (7, 1_000_003, 2), (100, 700_000, None)]
)
def test_tasks_cover_a_range_without_a_gap(first: int, last: int, wanted: int | None) -> None:
    pieces = cut_all([Range("s", first, last)], wanted)
    assert pieces[0].start == first
    assert pieces[-1].end == last
    assert all(one.end == next_.start for one, next_ in pairwise(pieces))
    assert all(one.start < one.end <= one.start + ROWS_MAX + GRAIN for one in pieces)
    assert len(pieces) >= (wanted or 1)
    if last - first > 100_000:
        assert all(piece.start % GRAIN == 0 for piece in pieces[1:])


def test_nothing_is_no_task() -> None:
    assert cut_all([Range("s", 4, 4)], 8) == []


def test_a_limit_is_shared_by_how_far_behind_each_stream_is() -> None:
    assert shares({"a": 10, "b": 5}, 100) == {"a": 10, "b": 5}
    assert shares({"a": 900, "b": 100, "c": 0}, 100) == {"a": 90, "b": 10, "c": 0}
    assert shares({"a": 100, "b": 1, "c": 1, "d": 0}, 2) == {"a": 1, "b": 1, "c": 1, "d": 0}
    found = shares({"a": 10**6, "b": 1, "c": 1}, 10)
    assert sum(found.values()) == 10
    assert found["b"] == found["c"] == 1, "a quiet stream does not wait for a loud one"


@given(st.dictionaries(st.text("abcdef", max_size=2), st.integers(0, 200)), st.integers(1, 300))
@example({"a": 5, "b": 5, "c": 5}, 14)
@example({"a": 1, "b": 1, "c": 1, "d": 60, "e": 63}, 5)
def test_a_share_ends_where_its_stream_does(lags: dict[str, int], limit: int) -> None:
    found = shares(lags, limit)
    behind = [stream for stream, lag in lags.items() if lag]
    assert all(found[stream] <= lag for stream, lag in lags.items())
    assert all(found[stream] >= 1 for stream in behind)
    assert sum(found.values()) == min(max(limit, len(behind)), sum(lags.values()))

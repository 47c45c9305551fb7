"""Arguments by which streams are declared and consumed by AMQP 0-9-1."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cogwork.amqp.types import Described, Symbol
from cogwork.amqp.types import Timestamp as AmqpTimestamp
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.types import Int64, Timestamp
from cogwork.container.amqp091.stream_arguments import (
    arguments_of_stream,
    check_equal_stream,
    options_of_stream,
    start_in,
)

PLACE = "queue 's' in vhost '/'"
STREAM: dict[str, object] = {"x-queue-type": "stream"}
DAY_S = 86_400


def start(value: object) -> object:
    found = start_in({} if value is None else {"x-stream-offset": value}, PLACE)[Symbol("start")]
    assert isinstance(found, Described)
    return found.value


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({}, {}),
        ({"x-max-length-bytes": 5_000}, {"retention_bytes": 5_000}),
        ({"x-max-age": "7D"}, {"retention_s": 7 * DAY_S}),
        ({"x-max-age": "90m"}, {"retention_s": 5_400}),
        ({"x-max-age": "61s", "x-max-length-bytes": 1}, {"retention_s": 61, "retention_bytes": 1}),
    ],
)
def test_arguments_are_options_and_options_are_arguments(
    arguments: dict[str, Any], options: dict[str, Any]
) -> None:
    assert options_of_stream({**STREAM, **arguments}, PLACE) == options
    assert arguments_of_stream(options) == {**STREAM, **arguments}


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [("1Y", 365 * DAY_S), ("2M", 60 * DAY_S), ("3D", 3 * DAY_S), ("4h", 14_400), ("5s", 5)],
)
def test_every_unit_of_an_interval_has_its_length(interval: str, seconds: int) -> None:
    assert options_of_stream({"x-max-age": interval}, PLACE) == {"retention_s": seconds}


def test_what_is_about_rabbitmqs_own_work_is_ignored() -> None:
    ignored = {"x-stream-max-segment-size-bytes": 10_000, "x-initial-cluster-size": 3}
    assert options_of_stream({**STREAM, **ignored}, PLACE) == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"x-max-age": "7d"}, f"invalid arg 'x-max-age' for {PLACE}: invalid_max_age"),
        ({"x-max-age": "0D"}, f"invalid arg 'x-max-age' for {PLACE}: invalid_max_age"),
        ({"x-max-age": 7}, f"invalid arg 'x-max-age' for {PLACE}: "),
        ({"x-max-length-bytes": -1}, "{value_negative,-1}"),
        ({"x-max-length-bytes": "many"}, '"expected integer, got longstr"'),
        ({"x-stream-max-segment-size-bytes": Int64(4_000_000_000)}, "Exceeded max value"),
        ({"x-message-ttl": 5}, f"'x-message-ttl' for {PLACE} of queue type rabbit_stream_queue"),
        ({"x-max-length": 5}, "of queue type rabbit_stream_queue"),
        ({"x-single-active-consumer": True}, "of queue type rabbit_stream_queue"),
    ],
)
def test_what_a_stream_cannot_have_is_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        options_of_stream({**STREAM, **arguments}, PLACE)
    assert refused.value.code is ReplyCode.PRECONDITION_FAILED
    assert text in str(refused.value)


def test_a_redeclaration_says_what_is_there_in_any_unit() -> None:
    check_equal_stream({**STREAM, "x-max-age": "168h"}, {"retention_s": 7 * DAY_S}, PLACE)
    check_equal_stream(STREAM, {"engine": "raft", "capture": ["topic/a"]}, PLACE)


@pytest.mark.parametrize(
    ("received", "text"),
    [
        ({}, "'x-queue-type' for queue 's' in vhost '/': received none but current is the value"),
        ({"x-queue-type": "quorum"}, "received 'quorum' but current is 'stream'"),
        ({**STREAM, "x-max-age": "2D"}, "received '2D' but current is '1D'"),
        (STREAM, "received none but current is the value '1D' of type 'longstr'"),
    ],
)
def test_one_that_says_something_else_is_refused(received: dict[str, Any], text: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        check_equal_stream(received, {"retention_s": DAY_S}, PLACE)
    assert refused.value.code is ReplyCode.PRECONDITION_FAILED
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "next"),
        ("first", "first"),
        ("last", "last"),
        ("next", "next"),
        (0, 0),
        (Int64(5_000), 5_000),
        (Timestamp(1_700_000_000), AmqpTimestamp(1_700_000_000_000)),
    ],
)
def test_a_consumer_starts_where_its_argument_says(value: object, expected: object) -> None:
    found = start(value)
    assert (found, type(found)) == (expected, type(expected))


def test_an_interval_is_so_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 10_000_000 * 10**6)
    found = start("2h")
    assert isinstance(found, AmqpTimestamp)
    assert found == 10_000_000 - 7_200_000


@pytest.mark.parametrize("value", ["newest", "7d", "", -1, True, 1.5, {}, []])
def test_what_names_no_place_is_refused(value: object) -> None:
    with pytest.raises(ProtocolError, match="invalid_stream_offset_arg") as refused:
        start(value)
    assert refused.value.code is ReplyCode.PRECONDITION_FAILED

"""Arguments by which streams are declared and consumed, as options of ours (RabbitMQ)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from cogwork.amqp.extensions import STREAM_BEYOND, STREAM_START, STREAM_TRUNCATED
from cogwork.amqp.types import Described, Symbol
from cogwork.amqp.types import Timestamp as AmqpTimestamp
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.types import Timestamp
from cogwork.container.amqp091.queue_arguments import (
    MILLISECONDS,
    QUEUE_TYPE,
    UNFIT_FOR_STREAMS,
    check_equal,
    invalid_argument,
    type_name,
)
from cogwork.plugin.intervals import interval_of, seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp091.types import Table

__all__ = (
    "STREAM",
    "arguments_of_stream",
    "check_equal_stream",
    "is_stream",
    "options_of_stream",
    "start_in",
)

STREAM: Final = "stream"

MAX_BYTES: Final = "x-max-length-bytes"
MAX_AGE: Final = "x-max-age"
SEGMENT_BYTES: Final = "x-stream-max-segment-size-bytes"
OFFSET: Final = "x-stream-offset"

SEGMENT_BYTES_MAX: Final = 3_000_000_000
"""What RabbitMQ takes; how large segments are here is up to the engine."""

PLACES: Final = ("first", "last", "next")


def is_stream(arguments: Table) -> bool:
    """Return whether a declaration wants a stream."""
    return arguments.get(QUEUE_TYPE) == STREAM


def options_of_stream(arguments: Table, place: str) -> dict[str, Any]:
    """Return what arguments mean, as options of a stream; see `[[stream]]`.

    Args:
        arguments: As they came.
        place: Which stream, for errors.

    Raises:
        ProtocolError: One has a value that it cannot have, or is none of streams (406).
    """
    for name in arguments:
        if name in UNFIT_FOR_STREAMS:
            text = f"invalid arg '{name}' for {place} of queue type rabbit_stream_queue"
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
    options: dict[str, Any] = {}
    size_bytes = _number_in(arguments, MAX_BYTES, place)
    if size_bytes is not None:
        options["retention_bytes"] = max(size_bytes, 1)
    if MAX_AGE in arguments:
        options["retention_s"] = _age_in(arguments[MAX_AGE], place)
    if (_number_in(arguments, SEGMENT_BYTES, place) or 0) > SEGMENT_BYTES_MAX:
        text = f"Exceeded max value for {SEGMENT_BYTES}"
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
    return options


def _number_in(arguments: Table, name: str, place: str) -> int | None:
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid_argument(name, place, f'"expected integer, got {type_name(value)}"')
    if value < 0:
        raise invalid_argument(name, place, f"{{value_negative,{value}}}")
    return int(value)


def _age_in(value: object, place: str) -> int:
    if not isinstance(value, str):
        raise invalid_argument(MAX_AGE, place, f"{{unacceptable_type,{type_name(value)}}}")
    age_s = seconds_of(value)
    if age_s is None:
        raise invalid_argument(MAX_AGE, place, "invalid_max_age")
    return age_s


def arguments_of_stream(options: Mapping[str, Any]) -> Table:
    """Return the arguments that would make a stream of some options, as far as there are any."""
    found: Table = {QUEUE_TYPE: STREAM}
    if options.get("retention_bytes") is not None:
        found[MAX_BYTES] = options["retention_bytes"]
    if options.get("retention_s") is not None:
        found[MAX_AGE] = interval_of(options["retention_s"])
    return found


def check_equal_stream(received: Table, options: Mapping[str, Any], place: str) -> None:
    """Check that a redeclaration says what a stream that is there was made with.

    Args:
        received: The arguments of the redeclaration.
        options: The stream's.
        place: Which stream, for errors.

    Raises:
        ProtocolError: It does not (406).
    """
    wanted: Table = dict(received)
    if is_stream(received):  # intervals are compared by their length
        wanted = arguments_of_stream(options_of_stream(received, place))
    check_equal(wanted, arguments_of_stream(options), place, (QUEUE_TYPE, MAX_BYTES, MAX_AGE))


def start_in(arguments: Table, place: str) -> dict[Symbol, Described]:
    """Return where a consumer starts, as the filters of an AMQP 1.0 receiver say it.

    Where it starts below the oldest record it gets that one first, and where it starts above the
    newest one it waits (RabbitMQ).

    Args:
        arguments: As they came.
        place: Which stream, for errors.

    Raises:
        ProtocolError: They name no place in a stream (406).
    """
    start = _start_of(arguments.get(OFFSET), place)
    return {
        Symbol("start"): Described(STREAM_START, start),
        Symbol("truncated"): Described(STREAM_TRUNCATED, "first"),
        Symbol("beyond"): Described(STREAM_BEYOND, "wait"),
    }


def _start_of(value: object, place: str) -> object:
    if value is None:
        return "next"
    if isinstance(value, Timestamp):
        return AmqpTimestamp(int(value) * MILLISECONDS)
    if isinstance(value, str):
        age_s = seconds_of(value)
        if value in PLACES:
            return value
        if age_s is not None:
            return AmqpTimestamp(time.time_ns() // 1_000_000 - age_s * MILLISECONDS)
    elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return int(value)
    what = f'<<"{value}">>' if isinstance(value, str) else f"{value}"
    reason = f"{{invalid_stream_offset_arg,{{{type_name(value)},{what}}}}}"
    raise invalid_argument(OFFSET, place, reason)

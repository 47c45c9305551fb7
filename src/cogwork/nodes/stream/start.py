"""Where a receiver wants to start, as the filters of its source say (AMQP 1.0 §3.5.8)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp.extensions import STREAM_BEYOND, STREAM_START, STREAM_TRUNCATED
from cogwork.amqp.types import Described, Symbol, Timestamp
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin
from cogwork.plugin.intervals import seconds_of
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.plugin.engine.contract import Start

__all__ = ("STREAM_FILTERS", "Wish", "wish_of")

RABBITMQ = Symbol("rabbitmq:stream-offset-spec")

STREAM_FILTERS = frozenset({STREAM_START, STREAM_TRUNCATED, STREAM_BEYOND, RABBITMQ})
"""Descriptors of the filters that a stream knows besides the selector."""

_EXPECTED = "first, last, next, snapshot, a whole number (an offset) or a timestamp is expected"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a receiver asks for.

    Attributes:
        start: Where to start.
        skips: Whether to go on from the first record that is left where retention was quicker;
            else the link is ended.
        waits: Whether to wait for an offset that is above the end; else the link is ended.
    """

    start: Start = Origin.NEXT
    skips: bool = False
    waits: bool = False


def wish_of(filter_set: Mapping[Symbol, object] | None) -> Wish:
    """Read a source's filter set; without a filter a receiver gets what comes from now on.

    Raises:
        Refused: A filter's value is none.
    """
    start: Start = Origin.NEXT
    skips = waits = False
    for described in (filter_set or {}).values():
        if not isinstance(described, Described):
            continue
        if described.descriptor == STREAM_START:
            start = _start_of(described.value)
        elif described.descriptor == RABBITMQ:
            # As RabbitMQ does: below the oldest record it starts there, above the newest it waits.
            start, skips, waits = _start_of(_moment_in(described.value)), True, True
        elif described.descriptor == STREAM_TRUNCATED:
            skips = _is_other(described, "first")
        elif described.descriptor == STREAM_BEYOND:
            waits = _is_other(described, "wait")
    return Wish(start, skips, waits)


def _moment_in(value: object) -> object:
    """Return the time that an interval such as `5m` before now is; any other value as it is."""
    age_s = seconds_of(value) if isinstance(value, str) else None
    return value if age_s is None else Timestamp(time.time_ns() // 1_000_000 - age_s * 1000)


def _start_of(value: object) -> Start:
    if isinstance(value, str):
        try:
            return Origin(value)
        except ValueError:
            raise Refused(f"start {value!r:.80}: {_EXPECTED}", Condition.INVALID_FIELD) from None
    if isinstance(value, Timestamp):
        return FromTime(int(value))
    if isinstance(value, datetime):
        return FromTime(int(value.timestamp() * 1000))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return FromOffset(int(value))
    raise Refused(f"start {value!r:.80}: {_EXPECTED}", Condition.INVALID_FIELD)


def _is_other(described: Described, other: str) -> bool:
    """Return whether something else is to be done than to end the link."""
    value = described.value
    if value in ("detach", other):
        return value == other
    raise Refused(
        f"{described.descriptor} {value!r:.80}: detach or {other} is expected",
        Condition.INVALID_FIELD,
    )

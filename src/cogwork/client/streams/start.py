"""Where to start in a stream: what people say, and what a source's filter says.

Times are resolved here, by this machine's clock and time zone: the container gets a timestamp.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING

from cogwork.amqp.extensions import STREAM_START, STREAM_TRUNCATED
from cogwork.amqp.types import Described, Symbol, Timestamp, ULong
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("StreamStart", "start_filters", "start_of")

StreamStart = (
    str | int | date | datetime | Origin | FromOffset | FromTime | Snapshot | type[Snapshot]
)
"""`first`, `last`, `next`, `snapshot`, an offset, a time, a snapshot, or `Snapshot` itself."""


DIGITS_MAX = len(str(ULong.MAX))
"""Of an offset; Python refuses to read thousands of them."""


def start_of(
    start: StreamStart, now: Callable[[], datetime] = datetime.now
) -> Origin | FromOffset | FromTime:
    """Read what somebody says.

    Args:
        start: `first`, `last`, `next`, `snapshot`; an offset, also as a string of digits; `today`,
            a time of today (`06:00`), a day, or a time as ISO 8601 has it, in the local zone where
            it names none; a date or datetime; a snapshot, to go on with the first record that is
            not in it; or the class `Snapshot`, for the newest one and what follows.
        now: Tells the time.

    Raises:
        ValueError: It is none of these; the text says what would be right.
    """
    if isinstance(start, Origin | FromOffset | FromTime):
        return start
    if start is Snapshot:
        return Origin.SNAPSHOT
    if isinstance(start, Snapshot):
        return FromOffset(start.offset)
    if isinstance(start, date):
        return FromTime(_ms_of(start))
    if isinstance(start, int) and not isinstance(start, bool) and 0 <= start <= ULong.MAX:
        return FromOffset(start)
    if isinstance(start, str):
        return _start_in_words(start.strip(), now)
    raise ValueError(_refusal(start))


def _start_in_words(text: str, now: Callable[[], datetime]) -> Origin | FromOffset | FromTime:
    if text in {each.value for each in Origin}:
        return Origin(text)
    if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX and int(text) <= ULong.MAX:
        return FromOffset(int(text))
    if text == "today":
        return FromTime(_ms_of(now().date()))
    try:
        return FromTime(_ms_of(_moment(text, now)))
    except ValueError:
        raise ValueError(_refusal(text)) from None


def _moment(text: str, now: Callable[[], datetime]) -> datetime:
    # Without a colon 2026-11, a month, were 20:26 o'clock eleven hours west of Greenwich.
    if ":" in text:
        with suppress(ValueError):
            return datetime.combine(now().date(), time.fromisoformat(text))
    return datetime.fromisoformat(text)


def _ms_of(at: date) -> int:
    moment = at if isinstance(at, datetime) else datetime.combine(at, time())
    return int(moment.timestamp() * 1000)


def _refusal(start: object) -> str:
    return (
        f"{start!r:.80} is no place in a stream: first, last, next, snapshot, today, an offset, a "
        "time such as 06:00 or 2026-11-20T06:00, or what load_snapshot() returned is expected"
    )


def start_filters(
    start: Origin | FromOffset | FromTime, *, skips: bool = False
) -> dict[Symbol, object]:
    """Make the filters of a source."""
    value: object
    if isinstance(start, Origin):
        value = start.value
    elif isinstance(start, FromOffset):
        value = ULong(start.offset)
    else:
        value = Timestamp(start.time_ms)
    filters: dict[Symbol, object] = {Symbol("start"): Described(STREAM_START, value)}
    if skips:
        filters[Symbol("truncated")] = Described(STREAM_TRUNCATED, "first")
    return filters

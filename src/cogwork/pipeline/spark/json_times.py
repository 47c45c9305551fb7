"""Dates and timestamps in JSON strings, read as Spark's `from_json` reads them.

Theory of operation. Spark takes ISO 8601 and a little more: months, days, hours, minutes and
seconds may have one digit, what follows a day may be left out, a date ignores what stands behind a
`T` or a blank, and a zone is an offset, a region or one of Java's short names. The calendar is the
proleptic Gregorian one for all years, also those that `datetime` does not know; so days are counted
here.

Not taken over is a time without a date, which Spark puts on the day on which the query runs: the
same record would have another value tomorrow.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

__all__ = ("Zone", "date_days", "timestamp_us", "zone_of")

TRIMMED = "".join(map(chr, range(0x21))) + "\x7f"
"""White space and control characters, which Spark leaves out at both ends."""

DATE = re.compile(
    r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d.].*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
DAY_NUMBER = re.compile(r"[+-]?\d{1,10}", re.ASCII)

ONE_DIGIT_HOUR = re.compile(r"([+-])(\d):", re.ASCII)
ONE_DIGIT_MINUTE = re.compile(r"([+-])(\d\d):(\d)$", re.ASCII)
OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})|(\d\d):?(\d\d)|(\d\d):(\d\d):(\d\d)|(\d\d)(\d\d)(\d\d))",
    re.ASCII,
)
OFFSET_S_MAX = 18 * 3600

UTC_NAMES = frozenset({"Z", "UTC", "GMT", "UT"})
SHORT_OFFSETS = {"EST": -5 * 3600, "MST": -7 * 3600, "HST": -10 * 3600}
SHORT_REGIONS = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Java's short names of regions (`ZoneId.SHORT_IDS`), which Spark knows as well."""

CYCLE_YEARS = 400
"""The calendar repeats itself, weekdays included."""

EPOCH_ORDINAL = 719_163
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_S = 86_400
SECOND_US = 1_000_000

GREGORIAN_START_DAYS = -141_427
"""15 October 1582; the day before was 4 October in the Julian calendar."""
JULIAN_START_DAYS = 2_440_588 + 32_082
"""Days between 1 March 4801 B.C. in the Julian calendar and 1970-01-01."""

INT32 = range(-(1 << 31), 1 << 31)
INT64 = range(-(1 << 63), 1 << 63)

Zone = int | tzinfo
"""An offset from UTC in seconds, or the rules of a region."""


def date_days(text: str) -> int:
    """Return the day that a text names, as its number after 1970-01-01.

    Raises:
        ValueError: It names none.
    """
    days = _date_days(text)
    if days is None and "GMT" in text:
        days = _date_days(text.replace("GMT", ""))
    if days is None and DAY_NUMBER.fullmatch(text) is not None:
        days = _rebased(int(text))  # so Spark 1.5 wrote dates, and each version reads them
    if days is None or days not in INT32:
        raise ValueError("not a date")
    return days


def timestamp_us(text: str, zone: Zone | None) -> int:
    """Return the moment that a text names, in microseconds after 1970-01-01.

    Args:
        text: With a date; with a time and a zone where it has them.
        zone: That of texts without one; None is for timestamps that have no zone, and takes none.

    Raises:
        ValueError: It names none.
    """
    moment = _timestamp_us(text, zone)
    if moment is None and zone is not None and "GMT" in text:
        moment = _timestamp_us(text.replace("GMT", ""), zone)
    if moment is None or moment not in INT64:
        raise ValueError("not a timestamp")
    return moment


@lru_cache(1024)
def zone_of(name: str) -> Zone:
    """Return the time zone of a name, as Java understands it.

    Raises:
        ValueError: There is none of that name.
    """
    name = ONE_DIGIT_HOUR.sub(r"\g<1>0\2:", name, count=1)
    name = ONE_DIGIT_MINUTE.sub(r"\1\2:0\3", name, count=1)
    if name in UTC_NAMES:
        return 0
    if name in SHORT_OFFSETS:
        return SHORT_OFFSETS[name]
    if (match := OFFSET.fullmatch(name)) is not None:
        return _offset_s(match)
    name = SHORT_REGIONS.get(name, name)
    if name not in _regions():
        raise ValueError(f"there is no time zone {name!r:.80}")
    return ZoneInfo(name)


@cache
def _regions() -> frozenset[str]:
    return frozenset(available_timezones())


def _offset_s(match: re.Match[str]) -> int:
    sign, *digits = match.groups()
    hours, minutes, seconds = ([int(each) for each in digits if each is not None] + [0, 0])[:3]
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > OFFSET_S_MAX:
        raise ValueError("no zone is that far from UTC")
    return -total if sign == "-" else total


def _date_days(text: str) -> int | None:
    match = DATE.fullmatch(text.strip(TRIMMED))
    if match is None:
        return None
    sign, year, month, day = match.groups()
    days = _days(int(sign + year), int(month or 1), int(day or 1))
    return None if days is None or days not in INT32 else days


def _days(year: int, month: int, day: int) -> int | None:
    """Return a day of the proleptic Gregorian calendar; None where there is none."""
    if not 1 <= month <= 12:
        return None
    known, cycles = _known_year(year)
    if not 1 <= day <= calendar.monthrange(known, month)[1]:
        return None
    ordinal = datetime(known, month, day, tzinfo=UTC).toordinal()
    return ordinal - EPOCH_ORDINAL + cycles * 146_097


def _known_year(year: int) -> tuple[int, int]:
    """Return a year that `datetime` knows, and the cycles between it and the one that is meant."""
    if 1 <= year <= 9999:
        return year, 0
    # In the far future, the rules of zones are those of today; in the far past, those before 1800.
    known = (2001 if year > 0 else 1) + (year - 1) % CYCLE_YEARS
    return known, (year - known) // CYCLE_YEARS


def _rebased(days: int) -> int:
    """Count a day of the Julian calendar, where days were counted by it, in the Gregorian one."""
    if days >= GREGORIAN_START_DAYS:
        return days
    since = days + JULIAN_START_DAYS
    cycle = (4 * since + 3) // 1461  # years, of which each begins with March
    in_year = since - 1461 * cycle // 4
    month = (5 * in_year + 2) // 153
    day = in_year - (153 * month + 2) // 5
    first = _days(cycle - 4800 + month // 10, month + 3 - 12 * (month // 10), 1) or 0
    return first + day


def _timestamp_us(text: str, zone: Zone | None) -> int | None:
    match = TIMESTAMP.fullmatch(text.strip(TRIMMED))
    if match is None:
        return None
    sign, year, month, day, hour, minute, second, fraction, named = match.groups()
    if named is not None:
        if zone is None:
            return None
        zone = zone_of(named.strip(TRIMMED[:-1]))
    days = _days(int(sign + year), int(month or 1), int(day or 1))
    clock = int(hour or 0), int(minute or 0), int(second or 0)
    if days is None or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    local_s = days * DAY_S + clock[0] * 3600 + clock[1] * 60 + clock[2]
    offset_s = zone if isinstance(zone, int) else _region_offset_s(zone, int(sign + year), local_s)
    return (local_s - offset_s) * SECOND_US + int((fraction or "")[:6].ljust(6, "0"))


def _region_offset_s(zone: tzinfo | None, year: int, local_s: int) -> int:
    """Return how far a region is from UTC; of a local time that comes twice, the first counts."""
    if zone is None:
        return 0
    _, cycles = _known_year(year)
    known = EPOCH + timedelta(seconds=local_s - cycles * 146_097 * DAY_S)
    offset = zone.utcoffset(known.replace(tzinfo=None))
    return 0 if offset is None else int(offset.total_seconds())

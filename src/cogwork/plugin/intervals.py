"""Intervals as RabbitMQ writes them for streams: a number with a unit, such as `7D` or `5m`."""

from __future__ import annotations

import re
from typing import Final

__all__ = ("interval_of", "seconds_of")

_UNITS_S: Final = {
    "Y": 365 * 86_400,
    "M": 30 * 86_400,
    "D": 86_400,
    "h": 3_600,
    "m": 60,
    "s": 1,
}
_INTERVAL: Final = re.compile(r"([0-9]{1,10})([YMDhms])\Z")


def seconds_of(text: str) -> int | None:
    """Return how long an interval such as `7D` is; None where it is none."""
    found = _INTERVAL.match(text)
    return (int(found[1]) * _UNITS_S[found[2]] or None) if found else None


def interval_of(seconds: float) -> str:
    """Return a time as an interval, in the largest unit that it is whole in."""
    unit = next((each for each in ("D", "h", "m") if not seconds % _UNITS_S[each]), "s")
    return f"{seconds / _UNITS_S[unit]:.15g}{unit}"

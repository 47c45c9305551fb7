"""What applications give: seen where it comes in, not where it would fail, or never end."""

from __future__ import annotations

from math import isnan
from numbers import Real

__all__ = ("checked_address", "demand_seconds")


def checked_address(address: object) -> str:
    """Return an address, which is a text; what else it has to be, the container says.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(address, str):
        raise ValueError(f"an address is a text, not {address!r:.80}")
    return address


def demand_seconds(name: str, seconds: float | None) -> None:
    """See that a time is one that can be over; None stands for no time.

    Raises:
        ValueError: It is no number, or NaN, which no clock ever reaches.
    """
    if seconds is None:
        return
    try:
        is_time = isinstance(seconds, (float, int, Real)) and not isnan(seconds)
    except OverflowError:  # an integer that is no float
        is_time = False
    if not is_time:
        raise ValueError(f"{name} is a number of seconds, not {seconds!r:.80}")

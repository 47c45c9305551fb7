"""Ranges of streams, cut into tasks."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("Range", "cut_all", "shares")

ROWS_MAX = 250_000
"""Rows of a task at most: a task that is tried again does not lose more than a fraction of a
second's work for each core, and some memory."""

TASKS = 4
"""How many tasks a read is cut into where nobody says: not by the cores of some machine, for a
trigger that is tried again on another one must be cut in the same places."""

ROWS_MIN = 20_000
"""Below so many rows another task costs more than it brings, unless somebody asks for it."""

GRAIN = 8192
"""Tasks begin at multiples of this offset where they can: there, batches are cut."""


class Range(NamedTuple):
    """Records of one stream.

    Attributes:
        stream: Its name.
        start: The first offset.
        end: The offset after the last record.
    """

    stream: str
    start: int
    end: int


def cut_all(ranges: Sequence[Range], partitions_min: int | None) -> list[Range]:
    """Cut ranges into tasks; empty ones are left out.

    Args:
        ranges: At most one of each stream.
        partitions_min: How many tasks the user wants at least; None for a few.
    """
    total = sum(each.end - each.start for each in ranges)
    if total <= 0:
        return []
    wanted = partitions_min or min(TASKS, -(-total // ROWS_MIN))
    rows = max(1, min(ROWS_MAX, -(-total // wanted)))
    return [piece for each in ranges for piece in _cut(each, rows)]


def _cut(whole: Range, rows: int) -> list[Range]:
    """Cut at multiples of the grain, where pieces are larger than that."""
    count = -(-(whole.end - whole.start) // rows)
    if count <= 1:
        return [whole] if whole.end > whole.start else []
    step = -(-(whole.end - whole.start) // count)
    edges = [whole.start]
    for index in range(1, count):
        edge = whole.start + index * step
        if step > 2 * GRAIN:
            edge = edge // GRAIN * GRAIN
        if edges[-1] < edge < whole.end:
            edges.append(edge)
    edges.append(whole.end)
    return [Range(whole.stream, start, end) for start, end in pairwise(edges)]


def shares(lags: Mapping[str, int], limit: int) -> dict[str, int]:
    """Divide a limit among streams by how far each is behind, so that none waits for another.

    Args:
        lags: What each stream has.
        limit: Of all together, but that each which has something gets one.
    """
    if sum(lags.values()) <= limit:
        return dict(lags)
    given = {stream: min(1, lag) for stream, lag in lags.items()}
    left = max(0, limit - sum(given.values()))
    room = {stream: lag - given[stream] for stream, lag in lags.items()}
    total = sum(room.values())
    if not total:
        return given
    for stream in lags:
        given[stream] += room[stream] * left // total
    # What rounding leaves over goes to the loudest, but no further than their ends.
    left = max(0, limit - sum(given.values()))
    for stream in sorted(lags, key=lambda each: lags[each], reverse=True):
        more = min(left, lags[stream] - given[stream])
        given[stream] += more
        left -= more
    return given

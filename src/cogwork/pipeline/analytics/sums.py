"""Figures of intervals added up, for tables and plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("by_key", "latencies_of", "over_time", "total")

Rows = list[dict[str, Any]]


def total(rows: Iterable[dict[str, Any]], name: str) -> int:
    """Add up a column."""
    return sum(row[name] or 0 for row in rows)


def by_key(rows: Rows, keys: Sequence[str], names: Sequence[str]) -> Rows:
    """Add up columns for each value of some others, the greatest sum of the first one first."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    made = [
        dict(zip(keys, values, strict=True)) | {name: total(group, name) for name in names}
        for values, group in groups.items()
    ]
    return sorted(made, key=lambda row: -row[names[0]])


def over_time(
    rows: Rows, key: str, name: str, interval_us: int, kept: Sequence[str]
) -> tuple[list[int], list[tuple[str, list[float]]]]:
    """Make a series of rates a second for each of some values of a key.

    Returns:
        The intervals, and the series with their names; where nothing was counted it is 0.
    """
    if not rows:
        return [], []
    first, last = min(row["at_us"] for row in rows), max(row["at_us"] for row in rows)
    times = list(range(first, last + 1, interval_us))
    sums: dict[tuple[str, int], float] = {}
    for row in rows:
        place = row[key], row["at_us"]
        sums[place] = sums.get(place, 0.0) + (row[name] or 0)
    seconds = interval_us / 1e6
    return times, [(each, [sums.get((each, at), 0.0) / seconds for at in times]) for each in kept]


def latencies_of(rows: Rows) -> Rows:
    """Put the latencies of an address's intervals together, the slowest address first."""
    groups: dict[tuple[str, str], Rows] = {}
    for row in rows:
        if row["measured"]:
            groups.setdefault((row["address"], row["container"]), []).append(row)
    made = [
        {
            "address": address,
            "container": container,
            "p50": sum(row["p50"] * row["measured"] for row in group) / total(group, "measured"),
            **{name: max(row[name] for row in group) for name in ("p90", "p99", "p999")},
            "measured": total(group, "measured"),
        }
        for (address, container), group in groups.items()
    ]
    return sorted(made, key=lambda row: -row["p99"])

"""What the workers of a container have of one address or queue, as one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("added_up",)

TOLD_APART = {"durability": ", ", "problem": "; "}
"""What is told of each worker where they differ, and what stands between."""


def added_up(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add up the counts of rows with one address; of a disorder the greatest stands for all.

    Where workers keep a queue otherwise, each of their ways is told, and each of their problems.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        known = found.setdefault((row["vhost"], row["address"]), {})
        for key, value in row.items():
            known[key] = _sum(key, known.get(key), value)
    return list(found.values())


def _sum(key: str, known: Any, value: Any) -> Any:  # noqa: ANN401  # whatever a row may hold
    if known is None or value is None:
        return value if known is None else known
    between = TOLD_APART.get(key)
    if between is not None:
        return between.join(dict.fromkeys((*known.split(between), value)))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return known
    return max(known, value) if key.startswith("disorder") else known + value

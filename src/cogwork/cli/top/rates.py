"""Rates, made of what two looks at a container counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.cli.top.pages import PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.cli.top.pages import Page

__all__ = ("rate", "with_rates")

Row = dict[str, Any]


def rate(before: object, now: object, elapsed_s: float) -> float:
    """Return what a count rose by in a second; 0 where it fell, as after a restart."""
    if not isinstance(before, (int, float)) or not isinstance(now, (int, float)) or elapsed_s <= 0:
        return 0.0
    return max(0.0, now - before) / elapsed_s


def with_rates(
    page: Page, rows: Sequence[Row], before: Mapping[object, Row], elapsed_s: float
) -> list[Row]:
    """Add the rates of a page to its rows.

    Args:
        page: Which.
        rows: What it has now.
        before: What it had, by `key_of`; a row that is new has rates of 0.
        elapsed_s: The time between.

    Returns:
        The rows, each with its rates in whole numbers.
    """
    return [{**row, **_rates(page, row, before.get(key_of(row)), elapsed_s)} for row in rows]


def key_of(row: Row) -> object:
    """Return what an entity is known by from one look to the next."""
    return row.get("worker"), row.get("vhost"), row["name"]


def _rates(page: Page, row: Row, before: Row | None, elapsed_s: float) -> dict[str, int]:
    known = before or {}
    return {
        f"{each}{PER_S}": round(rate(known.get(each), row.get(each), elapsed_s))
        for each in page.counts
    }

"""Looks at a container: what `cogwork top` asks of `$management`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.sums import added_up
from cogwork.cli.top.pages import PAGES
from cogwork.cli.top.rates import key_of, rate, with_rates
from cogwork.client import LinkRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.client import Client

__all__ = ("ROWS_MAX", "Sample", "look")

ROWS_MAX = 10_000
"""Of a page, how many entities are asked for: 40 requests of some 2 ms each."""

Facts = dict[str, Any]


class Sample(NamedTuple):
    """What one look found.

    Attributes:
        at_s: When, by the monotonic clock.
        page: The page that it is for.
        containers: What each worker says of itself; one where there are no workers.
        rows: The page's entities with their rates.
        total: How many entities there are.
        cpu_share: What the container used of one processor since the look before.
        frames_per_s: The frames that came in a second, since then.
        problem: Why the page is empty; None where it is not, or there is nothing.
    """

    at_s: float
    page: str
    containers: list[Facts]
    rows: list[Facts]
    total: int
    cpu_share: float
    frames_per_s: float
    problem: str | None


async def look(workers: Mapping[str, Client], page: str, before: Sample | None) -> Sample:
    """Ask a container how it is.

    Args:
        workers: A connection to each of its workers.
        page: Whose entities are wanted.
        before: The look before this one; rates are made of both.

    Raises:
        LinkRefused: The login may not ask.
        ConnectError: It cannot be reached.
    """
    managers = {name: Manager(client) for name, client in workers.items()}
    asked = (each.get("READ", "container") for each in managers.values())
    containers: list[Facts] = list(await asyncio.gather(*asked))
    at_s = time.monotonic()
    problem, rows, total = None, list[Facts](), 0
    try:
        rows, total = await _rows(managers, page)
    except LinkRefused as error:
        problem = error.description
    elapsed_s = at_s - before.at_s if before is not None else 0.0
    known = {}
    if before is not None and before.page == page:
        known = {key_of(row): row for row in before.rows}
    return Sample(
        at_s,
        page,
        containers,
        with_rates(PAGES[page], rows, known, elapsed_s),
        total,
        _rose("cpu_s", before, containers, elapsed_s),
        _rose("frames_in", before, containers, elapsed_s),
        problem,
    )


async def _rows(managers: Mapping[str, Manager], page: str) -> tuple[list[Facts], int]:
    kind, attributes = PAGES[page].kind, PAGES[page].attributes
    asked = (each.rows(kind, attributes, ROWS_MAX) for each in managers.values())
    found = await asyncio.gather(*asked)
    totals = [total for _, total in found]
    if len(found) == 1:
        return found[0][0], totals[0]
    if PAGES[page].is_shared:
        rows = added_up(row for each, _ in found for row in each)
        return rows, max(len(rows), *totals)
    named = zip(managers, found, strict=True)
    return [{**row, "worker": name} for name, (each, _) in named for row in each], sum(totals)


def _rose(key: str, before: Sample | None, now: list[Facts], elapsed_s: float) -> float:
    """Return what a count of all workers rose by in a second; those count that were there."""
    then = {each["name"]: each for each in before.containers} if before is not None else {}
    pairs = ((then[each["name"]], each) for each in now if each["name"] in then)
    return sum(rate(old[key], new[key], elapsed_s) for old, new in pairs)

"""Plays the flights of New York 2013 through three linked containers, and checks what came out.

    python examples/flights/demo.py [--picture FILE]

In the middle of each act the container that carries the traffic is killed. The exit code is 1 where
a count disagrees.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from calls import CALLS_OF_EACH_ROUTE, SERVICE, Asked, Delays, ask_delays
from flights import TOPIC, WORK, Flights, load
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from topics import Flown, Follower, play_topics
from triangle import Triangle
from work import Shift, do_the_work

import cogwork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from triangle import Strike

DEADLINE_S = 180
"""Nothing here takes a third of it; who waits for it longer has lost something."""


class Check(NamedTuple):
    """One agreement, or disagreement."""

    what: str
    expected: str
    found: str
    holds: bool


class Rate(NamedTuple):
    """One speed, or another fact."""

    what: str
    speed: str


@click.command()
@click.option("--picture", type=click.Path(path_type=Path), help="Save the last screen as SVG.")
def main(picture: Path | None) -> None:
    """Play a year of flights through topics, a work queue and a service."""
    console = Console(record=picture is not None, width=100 if picture else None, highlight=False)
    console.print("[bold]Cogwork[/]: the flights that left New York in 2013")
    flights = load()
    console.print(
        f"{len(flights):,} flights; containers a, b and c; the way from a to c is through b (cost 2),\n"
        "or direct (cost 10). In the middle of each act b is killed with SIGKILL"
    )
    try:
        checks, rates = asyncio.run(play(flights, console))
    except TimeoutError:
        console.print(f"[red]✗ not everything has come after {DEADLINE_S} s[/]")
        sys.exit(1)
    console.print(_summary(checks, rates))
    all_hold = all(check.holds for check in checks)
    console.print(
        "[green]✓ every count agrees[/]" if all_hold else "[red]✗ some counts disagree[/]"
    )
    if picture is not None:
        console.save_svg(str(picture), title="make demo")
    sys.exit(0 if all_hold else 1)


async def play(flights: Flights, console: Console) -> tuple[list[Check], list[Rate]]:
    """Plays the three acts; returns what was checked and how fast it went."""
    followers = [
        _follower(flights, "flights.JFK.#", "c", flights.count("origin", "JFK")),
        _follower(flights, "flights.*.LAX.*", "a", flights.count("dest", "LAX")),
        _follower(flights, "flights.#", "c", len(flights)),
    ]
    expected = flights.mean_delays()
    calls = len(expected) * CALLS_OF_EACH_ROUTE
    delays = Delays()
    totals = {
        "published": len(flights),
        **{follower.pattern: follower.expected for follower in followers},
        "posted": len(flights),
        "confirmed": len(flights),
        "answered": calls,
    }
    async with (
        asyncio.timeout(DEADLINE_S),
        Triangle.running() as triangle,
        AsyncExitStack() as stack,
    ):
        clients = {
            place: await stack.enter_async_context(cogwork.connect(triangle.urls[place]))
            for place in ("a", "c")
        }
        progress = stack.enter_context(_progress(console))
        bars = {name: progress.add_task(name, total=total) for name, total in totals.items()}

        def advance(name: str, count: int) -> None:
            progress.advance(bars[name], count)

        flown = await play_topics(triangle, clients, flights, followers, delays, advance)
        await triangle.bring_back_b()
        shift = await do_the_work(triangle, clients, flights, advance)
        await triangle.bring_back_b()
        asked = await ask_delays(triangle, clients, delays, expected, advance)
    checks = [
        *map(_followed, followers),
        *_resent(flown, followers),
        *_worked(shift, len(flights)),
        _equal(f"right answers of {SERVICE}, at c, to callers at a", calls, asked.right),
        *_struck("flights", flown),
        *_struck("work", shift),
        *_struck("calls", asked),
    ]
    return checks, _rates(flown, followers, shift, asked)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def _follower(flights: Flights, pattern: str, place: str, expected: int) -> Follower:
    return Follower(pattern, place, expected, bytearray(len(flights)))


def _followed(follower: Follower) -> Check:
    found = f"{follower.count:,}" + ("" if follower.in_order else ", out of order")
    holds = follower.in_order and follower.count == follower.expected
    what = f"flights on {follower.pattern}, at {follower.place}"
    return Check(what, f"{follower.expected:,}", found, holds)


def _resent(flown: Flown, followers: list[Follower]) -> Iterator[Check]:
    """Who sends again what is in doubt may be the cause of a second copy, and of no other."""
    for follower in followers:
        if follower.again:
            what = f"came twice on {follower.pattern}, for their outcome was in doubt"
            holds = follower.again <= flown.resent
            yield Check(what, f"≤ {flown.resent:,}", f"{follower.again:,}", holds)


def _worked(shift: Shift, total: int) -> Iterator[Check]:
    accepted = sum(shard["accepted"] for shard in shift.shards)
    left = sum(shard["depth"] for shard in shift.shards)
    yield _equal(f"items of {WORK} confirmed exactly once", total, shift.confirmed.count(1))
    yield _equal("the same by the queue's own account, at a and c", total, accepted)
    yield _equal(f"items left in {WORK}", 0, left)


def _struck(act: str, seen: Flown | Shift | Asked) -> Iterator[Check]:
    """Killing b shows something only where it was at work, and others went on with that."""
    carried, direct = seen.strike.carried, seen.direct - seen.strike.direct_before
    what = f"{act}: messages by b until it was killed"
    yield Check(what, "> 0", f"{carried:,}", carried > 0)
    yield Check(f"{act}: messages by the direct link after that", "> 0", f"{direct:,}", direct > 0)


def _rates(flown: Flown, followers: list[Follower], shift: Shift, asked: Asked) -> list[Rate]:
    total = len(shift.confirmed)
    deliveries = sum(follower.count for follower in followers)
    times_s = sorted(asked.times_s)
    shares = " / ".join(f"{count:,}" for count in shift.by_worker)
    return [
        Rate(f"published to {TOPIC}.…", f"{total / flown.took_s:,.0f} a second"),
        Rate("delivered to three subscribers", f"{deliveries / flown.took_s:,.0f} a second"),
        Rate("flights sent again, calls made again", f"{flown.resent:,} / {asked.repeated:,}"),
        Rate("work items confirmed", f"{total / shift.took_s:,.0f} a second"),
        Rate("shares of the four workers", shares),
        Rate("median time of a call, 32 at once", f"{times_s[len(times_s) // 2] * 1e3:.2f} ms"),
    ]


def _equal(what: str, expected: int, found: int) -> Check:
    return Check(what, f"{expected:,}", f"{found:,}", expected == found)


def _summary(checks: list[Check], rates: list[Rate]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("pandas says", justify="right")
    table.add_column("Cogwork delivered", justify="right")
    table.add_column("")
    for check in checks:
        mark = "[green]✓[/]" if check.holds else "[red]✗[/]"
        table.add_row(check.what, check.expected, check.found, mark)
    table.add_section()
    for rate in rates:
        table.add_row(rate.what, "", rate.speed, "")
    return table


if __name__ == "__main__":
    main()

"""Plays the flights of New York 2013 through a container, and checks what came out.

    python examples/flights/demo.py [--url URL] [--picture FILE]

Without `--url` it starts a container of its own. The exit code is 1 where a count disagrees.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from acts import (
    CALLS_OF_EACH_ROUTE,
    SERVICE,
    Delays,
    Follower,
    ask_delays,
    do_the_work,
    play_topics,
)
from flights import TOPIC, WORK, Flights, load
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import cogwork

if TYPE_CHECKING:
    from collections.abc import Iterator

START_TIMEOUT_S = 20


class Check(NamedTuple):
    """One agreement, or disagreement."""

    what: str
    expected: str
    found: str
    holds: bool


class Rate(NamedTuple):
    """One speed."""

    what: str
    speed: str


@click.command()
@click.option("--url", help="A container that runs already.")
@click.option("--picture", type=click.Path(path_type=Path), help="Save the last screen as SVG.")
def main(url: str | None, picture: Path | None) -> None:
    """Play a year of flights through topics, a work queue and a service."""
    console = Console(record=picture is not None, width=100 if picture else None, highlight=False)
    console.print("[bold]Cogwork[/]: the flights that left New York in 2013")
    flights = load()
    with _container(url) as place:
        console.print(f"{len(flights):,} flights, container at {place}")
        checks, rates = asyncio.run(play(place, flights, console))
    console.print(_summary(checks, rates))
    all_hold = all(check.holds for check in checks)
    console.print(
        "[green]✓ every count agrees[/]" if all_hold else "[red]✗ some counts disagree[/]"
    )
    if picture is not None:
        console.save_svg(str(picture), title="make demo")
    sys.exit(0 if all_hold else 1)


@contextmanager
def _container(url: str | None) -> Iterator[str]:
    """Starts a container in a process of its own, where none was given."""
    if url is not None:
        yield url
        return
    command = [sys.executable, "-m", "cogwork.cli.main", "serve", "--json"]
    process = subprocess.Popen(
        [*command, "--id", "demo", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit("the container did not start")
        yield _url_in(line)
    finally:
        process.terminate()
        process.wait(START_TIMEOUT_S)


async def play(url: str, flights: Flights, console: Console) -> tuple[list[Check], list[Rate]]:
    """Plays the three acts; returns what was checked and how fast it went."""
    followers = [
        Follower("flights.JFK.#", flights.count("origin", "JFK")),
        Follower("flights.*.LAX.*", flights.count("dest", "LAX")),
        Follower("flights.#", len(flights)),
    ]
    expected = flights.mean_delays()
    delays = Delays()
    totals = {
        "published": len(flights),
        **{follower.pattern: follower.expected for follower in followers},
        "posted": len(flights),
        "confirmed": len(flights),
        "answered": len(expected) * CALLS_OF_EACH_ROUTE,
    }
    with _progress(console) as progress:
        bars = {name: progress.add_task(name, total=total) for name, total in totals.items()}

        def advance(name: str, count: int) -> None:
            progress.advance(bars[name], count)

        async with cogwork.connect(url) as mesh:
            topic_s = await play_topics(mesh, flights, followers, delays, advance)
            shift = await do_the_work(mesh, flights, advance)
            right, times_s = await ask_delays(mesh, delays, expected, advance)
            left = await _depth(mesh)
    checks = [_followed(follower) for follower in followers]
    checks += [
        _equal(f"items of {WORK} confirmed exactly once", len(flights), shift.confirmed.count(1)),
        _equal(f"items left in {WORK}", 0, left),
        _equal(f"right answers of {SERVICE}", totals["answered"], right),
    ]
    deliveries = sum(follower.count for follower in followers)
    times_s.sort()
    shares = " / ".join(f"{count:,}" for count in shift.by_worker)
    rates = [
        Rate(f"published to {TOPIC}.…", f"{len(flights) / topic_s:,.0f} a second"),
        Rate("delivered to three subscribers", f"{deliveries / topic_s:,.0f} a second"),
        Rate("work items confirmed", f"{len(flights) / shift.took_s:,.0f} a second"),
        Rate("shares of the four workers", shares),
        Rate("median time of a call, 32 at once", f"{times_s[len(times_s) // 2] * 1e3:.2f} ms"),
    ]
    return checks, rates


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


async def _depth(mesh: cogwork.Mesh) -> int:
    """Asks the container how many items its queue still has."""
    reply = await mesh.manage("READ", {"type": "queue", "name": WORK})
    return int(reply.body["depth"])


def _followed(follower: Follower) -> Check:
    found = f"{follower.count:,}" + ("" if follower.in_order else ", out of order")
    holds = follower.in_order and follower.count == follower.expected
    return Check(f"flights on {follower.pattern}", f"{follower.expected:,}", found, holds)


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


def _url_in(line: str) -> str:
    return str(json.loads(line)["endpoints"][0])


if __name__ == "__main__":
    main()

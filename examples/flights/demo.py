"""Send the flights of New York 2013 through three linked containers, and check the results.

    python examples/flights/demo.py [--picture FILE]

Acts 1 to 5 each kill a container: the one that carries the traffic, then the leader of the stream,
then, for good, the owner of a queue. Finally the stream is archived, and Spark answers what pandas
answered before. The exit code is 1 if a count disagrees.
"""

from __future__ import annotations

import asyncio
import math
import sys
from pathlib import Path
from typing import NamedTuple

import click
from archived import Archived, archive_and_ask
from calls import CALLS_OF_EACH_ROUTE, SERVICE, Asked, Delays, ask_delays
from flights import REPLICATED, STREAM, TOPIC, WORK, Flights, load
from outlive import Outlived, outlive_the_owner
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sequence import LATE, PLACES, Kept, Sequence, append_and_read
from topics import Flown, Follower, play_topics
from triangle import DIRECT_COST, LOGS, Triangle
from waits import WaitError, at_most
from work import WORKERS, Shift, do_the_work

from cogwork import CogworkError

DIGITS = 12
"""So much of a digest is shown."""

ACT_S = 900.0
"""An act takes a twentieth of it on a quiet machine."""


REPORTS = Path("build/demo")
"""Takes the pages of the audit and of the analytics."""


class Check(NamedTuple):
    """One agreement, or disagreement: two texts that stand beside each other."""

    what: str
    expected: str
    found: str
    holds: bool


class Rate(NamedTuple):
    """One speed, or another fact."""

    what: str
    speed: str


class Result(NamedTuple):
    """What came of the six acts.

    Attributes:
        checks: What was counted.
        strikes: For each act, what b carried until it was killed, and the direct link after that.
        led: How much was appended until the leader was killed, and after that; and how many items
            were done until the queue's owner was killed, and after that.
        rates: How fast it went.
    """

    checks: list[Check]
    strikes: list[Check]
    led: list[Check]
    rates: list[Rate]


class Acts(NamedTuple):
    """What each of the six acts counted."""

    followers: list[Follower]
    flown: Flown
    shift: Shift
    asked: Asked
    kept: Kept
    outlived: Outlived
    archived: Archived


@click.command()
@click.option("--picture", type=click.Path(path_type=Path), help="Save the last screen as SVG.")
def main(picture: Path | None) -> None:
    """Send a year of flights through topics, queues, a service and a stream, and check them."""
    console = Console(record=picture is not None, width=100 if picture else None, highlight=False)
    console.print("[bold]The Cogwork demo[/]: the flights that left New York in 2013")
    flights = load()
    console.print(
        f"{len(flights):,} flights go through three linked containers: a, b and c. The route from\n"
        f"a to c through b costs 2, the direct link {DIRECT_COST}. [red]Acts 1 to 5 each kill a\n"
        "container[/] (SIGKILL): first b, three times; then a stream's leader, which restarts;\n"
        "then the owner of a replicated queue, for good. In act 6 Spark reads the archived stream."
    )
    try:
        result = asyncio.run(play(flights, console))
    except (CogworkError, WaitError) as error:
        console.print(
            f"[red]✗ {escape(str(error))}[/]\nThe containers' logs are in {LOGS.resolve()}"
        )
        sys.exit(1)
    console.print(_summary(result))
    all_hold = all(check.holds for check in [*result.checks, *result.strikes, *result.led])
    console.print(
        "[green]✓ every count agrees[/]" if all_hold else "[red]✗ some counts disagree[/]"
    )
    if picture is not None:
        console.save_svg(str(picture), title="make demo")
    sys.exit(0 if all_hold else 1)


async def play(flights: Flights, console: Console) -> Result:
    """Play the six acts, and starts b again after each of the first three."""
    followers = [
        _follower(flights, "flights.JFK.#", "c", flights.count("origin", "JFK")),
        _follower(flights, "flights.*.LAX.*", "a", flights.count("dest", "LAX")),
        _follower(flights, "flights.#", "c", len(flights)),
    ]
    expected = flights.mean_delays()
    carriers = flights.mean_delays_by_carrier()
    calls = len(expected) * CALLS_OF_EACH_ROUTE
    delays = Delays()
    totals = {
        "flights published": len(flights),
        **{follower.pattern: follower.expected for follower in followers},
        "items sent": len(flights),
        "items confirmed": len(flights),
        "calls answered": calls,
        "records appended": len(flights),
        "records read": len(flights) * len(PLACES),
        "replicated: sent": len(flights),
        "replicated: done": len(flights),
        "records archived": len(flights),
        "carriers by Spark": len(carriers),
        "reports written": 2,
    }
    async with Triangle.running() as triangle:
        with _progress(console) as progress:
            bars = {name: progress.add_task(name, total=total) for name, total in totals.items()}

            def advance(name: str, count: int) -> None:
                progress.advance(bars[name], count)

            async with at_most("act 1 (topics) to finish", ACT_S):
                flown = await play_topics(triangle, flights, followers, delays, advance)
            await triangle.bring_back_b()
            async with at_most("act 2 (work queue) to finish", ACT_S):
                shift = await do_the_work(triangle, flights, advance)
            await triangle.bring_back_b()
            async with at_most("act 3 (calls) to finish", ACT_S):
                asked = await ask_delays(triangle, delays, expected, advance)
            await triangle.bring_back_b()
            async with at_most("act 4 (stream) to finish", ACT_S):
                kept = await append_and_read(triangle, flights, advance)
            async with at_most("act 5 (replicated queue) to finish", ACT_S):
                outlived = await outlive_the_owner(triangle, flights, advance)
            survivor = triangle.url_of_a_survivor(outlived.killed)
            folders = (triangle.folder / "archive", REPORTS)
            archived = await archive_and_ask(survivor, STREAM, REPLICATED, folders, advance)
    acts = Acts(followers, flown, shift, asked, kept, outlived, archived)
    return _result(flights, acts, calls, carriers)


def _result(flights: Flights, acts: Acts, calls: int, carriers: dict[str, float]) -> Result:
    """Compare what the acts counted with what pandas says."""
    checks = [
        *map(_followed, acts.followers),
        _repeated(acts.flown, acts.followers),
        *_worked(acts.shift, len(flights)),
        _equal(f"{SERVICE}: correct answers", calls, acts.asked.right),
        *_kept(acts.kept, flights),
        _equal(f"{REPLICATED}: confirmed once", len(flights), acts.outlived.confirmed.count(1)),
        _equal(f"{REPLICATED}: left in the queue", 0, acts.outlived.left),
        *_archived(acts.archived, carriers, len(flights)),
    ]
    strikes = [
        _struck("flights", acts.flown),
        _struck("work items", acts.shift),
        _struck("calls", acts.asked),
    ]
    led = [
        _led(
            "stream led by",
            acts.kept.killed,
            acts.kept.followed,
            acts.kept.before,
            len(flights),
        ),
        _led(
            "queue owned by",
            acts.outlived.killed,
            acts.outlived.followed,
            acts.outlived.before,
            len(flights),
        ),
    ]
    return Result(
        checks,
        strikes,
        led,
        [
            *_rates(acts),
            *_rates_outlived(acts.outlived),
            Rate("archived, including Spark's start", f"{acts.archived.took_s:.0f} s"),
            *(Rate("report", str(page)) for page in acts.archived.pages),
        ],
    )


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


# -- what is checked


def _followed(follower: Follower) -> Check:
    found = f"{follower.count:,}" + ("" if follower.in_order else ", out of order")
    holds = follower.in_order and follower.count == follower.expected
    what = f"{follower.pattern}, received at {follower.place}"
    return Check(what, f"{follower.expected:,}", found, holds)


def _repeated(flown: Flown, followers: list[Follower]) -> Check:
    """Who sends again what is in doubt may be the cause of a second copy, and of no other."""
    found = " / ".join(f"{follower.again:,}" for follower in followers)
    holds = all(follower.again <= flown.resent for follower in followers)
    return Check("duplicates of resent flights", f"≤ {flown.resent:,}", found, holds)


def _worked(shift: Shift, total: int) -> list[Check]:
    accepted = sum(shard["accepted"] for shard in shift.shards)
    left = sum(shard["depth"] for shard in shift.shards)
    return [
        _equal(f"{WORK}: confirmed once", total, shift.confirmed.count(1)),
        _equal(f"{WORK}: accepted by the queue", total, accepted),
        _equal(f"{WORK}: left in the queue", 0, left),
    ]


def _equal(what: str, expected: int, found: int) -> Check:
    return Check(what, f"{expected:,}", f"{found:,}", expected == found)


def _struck(act: str, seen: Flown | Shift | Asked) -> Check:
    """Killing b shows something only where it was at work, and the other link took over."""
    carried, direct = seen.strike.carried, seen.direct - seen.strike.direct
    return Check(act, f"{carried:,}", f"{direct:,}", carried > 0 and direct > 0)


def _kept(kept: Kept, flights: Flights) -> list[Check]:
    """Everybody has read the same: each flight once, in the table's order."""
    wanted = Sequence.of(flights).digest
    digests = {kept.read[place].digest for place in PLACES}
    return [
        *(
            _equal(
                f"{STREAM}, read at {place}{' (late start)' * (place == LATE)}",
                len(flights),
                kept.read[place].count,
            )
            for place in PLACES
        ),
        Check(
            f"SHA-256 of what {', '.join(PLACES)} read",
            wanted[:DIGITS],
            " / ".join(sorted(digest[:DIGITS] for digest in digests)),
            digests == {wanted},
        ),
    ]


def _archived(archived: Archived, carriers: dict[str, float], total: int) -> list[Check]:
    """The table has each record once, and Spark's means of it are those of pandas."""
    equal = sum(
        math.isclose(mean, archived.delays.get(carrier, math.nan))
        for carrier, mean in carriers.items()
    )
    return [
        _equal(f"{STREAM}, rows of its Iceberg table", total, archived.rows),
        _equal("carriers with equal mean delays in Spark", len(carriers), equal),
        _equal(f"{REPLICATED}: processed, says the audit", total, archived.processed),
        Check(
            "claims that the audit checks",
            f"{archived.claims} claims",
            f"{archived.holding} hold",
            archived.claims == archived.holding > 0,
        ),
    ]


def _led(what: str, killed: str, followed: str, before: int, total: int) -> Check:
    """Killing who leads shows something only where another one had to take over."""
    after = total - before
    holds = before > 0 and after > 0 and killed != followed
    return Check(f"{what} {killed}, then by {followed}", f"{before:,}", f"{after:,}", holds)


def _rates(acts: Acts) -> list[Rate]:
    followers, flown, shift, asked, kept, *_ = acts
    total = len(shift.confirmed)
    deliveries = sum(follower.count for follower in followers)
    times_s = sorted(asked.times_s)
    places = ", ".join(place for place, _ in WORKERS)
    shares = " / ".join(f"{count:,}" for count in shift.by_worker)
    return [
        Rate(f"published to {TOPIC}.…", f"{total / flown.took_s:,.0f} per second"),
        Rate("delivered to three subscribers", f"{deliveries / flown.took_s:,.0f} per second"),
        Rate("work items confirmed", f"{total / shift.took_s:,.0f} per second"),
        Rate(f"items by worker at {places}", shares),
        Rate("median call, 32 concurrent", f"{times_s[len(times_s) // 2] * 1e3:.2f} ms"),
        Rate("records appended on two disks", f"{total / kept.took_s:,.0f} per second"),
        Rate("longest pause, stream fail-over", f"{kept.gap_s:.2f} s"),
        Rate("resent and repeated", f"{flown.resent:,} flights, {asked.repeated:,} calls"),
    ]


def _rates_outlived(outlived: Outlived) -> list[Rate]:
    speed = len(outlived.confirmed) / outlived.took_s
    return [
        Rate("replicated items confirmed", f"{speed:,.0f} per second"),
        Rate("longest pause, queue fail-over", f"{outlived.gap_s:.2f} s"),
        Rate("resent, accepted once", f"{outlived.resent:,} items"),
    ]


# -- the last screen


def _summary(result: Result) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("pandas says", justify="right")
    table.add_column("Cogwork delivered", justify="right")
    table.add_column("")
    _add(table, result.checks)
    heading = ("messages between a and c", "through b", "directly after the kill", "")
    table.add_row(*heading, style="bold")
    _add(table, result.strikes)
    heading = ("records and items", "before the kill", "after the kill", "")
    table.add_row(*heading, style="bold")
    _add(table, result.led)
    for rate in result.rates:
        table.add_row(rate.what, "", rate.speed, "")
    return table


def _add(table: Table, checks: list[Check]) -> None:
    for check in checks:
        mark = "[green]✓[/]" if check.holds else "[red]✗[/]"
        table.add_row(check.what, check.expected, check.found, mark)
    table.add_section()


if __name__ == "__main__":
    main()

"""A queue on three containers' disks, 1→1, unsettled, with its clients at one of the containers.

    python bench/queue_replicated.py [--runs N] [--count N]

A message is accepted, delivered and confirmed when a majority has it on disk. Each run has a queue
of its own. Its owner is mostly the first of its replicas, where the clients are, and sometimes
another one, as an election has it: those runs are told apart. Prints one JSON line: the median rate
with the clients at the owner, every run's rate and CPU seconds of the three containers a million,
the limit, and problems. The exit code is 1 where it does not hold, or anything was lost. TMPDIR
says where the data are.
"""

from __future__ import annotations

import asyncio
import json
import sys
from statistics import median
from typing import Final

import click
from voters import NAMES, served

import cogwork
from cogwork.bench.measure import Broker
from cogwork.bench.scenarios import Load, run_scenario
from cogwork.bench.usage import ProcessUsage
from cogwork.cli.management.manager import Manager

_MUST: Final = 100_000
_MILLION: Final = 1_000_000
_TABLES: Final = """
[[address]]
prefix = "queue"
kind = "queue"
durability = "replicated"
replicas = ["a", "b", "c"]
"""


@click.command()
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1))
@click.option("--count", default=_MILLION, show_default=True, type=click.IntRange(1))
def main(runs: int, count: int) -> None:
    """Measure three containers, one queue after the other."""
    problems: set[str] = set()
    found: dict[str, list[tuple[int, float]]] = {"at_owner": [], "elsewhere": []}
    known: set[str] = set()
    with served(tables=_TABLES) as trio:
        pids = [process.pid for process in trio.processes.values()]
        url = trio.url(NAMES[0])
        route = Broker(url, ProcessUsage(*pids))
        for _ in range(runs):
            result = run_scenario("queue", route, Load(count=count))
            owners = asyncio.run(_owners(url))
            (queue,) = owners.keys() - known
            known.add(queue)
            where = "at_owner" if owners[queue] == NAMES[0] else "elsewhere"
            found[where].append((round(result.rate), round(result.cpu_s_per_million or 0.0, 2)))
            problems |= set(result.problems)
    rates = [rate for rate, _ in found["at_owner"]]
    holds = bool(rates) and median(rates) >= _MUST and not problems
    line = {
        "case": "queue-replicated",
        "title": "queue on three disks, 1→1, unsettled, group commit, clients at its owner",
        "rate": median(rates) if rates else None,
        **{
            where: [{"rate": r, "cpu_s_per_million": c} for r, c in runs]
            for where, runs in found.items()
        },
        "must": _MUST,
        "holds": holds,
        "problems": sorted(problems),
    }
    click.echo(json.dumps(line, ensure_ascii=False))
    sys.exit(0 if holds else 1)


async def _owners(url: str) -> dict[str, str]:
    """Return the owner of each queue."""
    async with cogwork.connect(url) as client:
        rows, _ = await Manager(client).rows("queue", ("address", "owner"))
    return {row["address"]: row["owner"] for row in rows}


if __name__ == "__main__":
    main()

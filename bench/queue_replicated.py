"""A queue on three containers' disks, 1→1, unsettled, wherever it is owned.

    python bench/queue_replicated.py [--runs N] [--count N]

A message is accepted, delivered and confirmed when a majority has it on disk. Prints one JSON line:
the median rate, every run's, CPU seconds of the three containers a million, and the limit. The exit
code is 1 where it does not hold, or anything was lost. TMPDIR says where the data are.
"""

from __future__ import annotations

import json
import sys
from statistics import median
from typing import Final

import click
from voters import NAMES, served

from cogwork.cli.loadgen.measure import Broker
from cogwork.cli.loadgen.scenarios import Load, run_scenario
from cogwork.cli.loadgen.usage import ProcessUsage

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
    """Measure fresh containers, one run after the other."""
    problems: list[str] = []
    rates: list[float] = []
    cpu_s: list[float] = []
    with served(tables=_TABLES) as trio:
        pids = [process.pid for process in trio.processes.values()]
        route = Broker(trio.url(NAMES[0]), ProcessUsage(*pids))
        for _ in range(runs):
            result = run_scenario("queue", route, Load(count=count))
            rates.append(result.rate)
            cpu_s.append(result.cpu_s_per_million or 0.0)
            problems += result.problems
    holds = median(rates) >= _MUST and not problems
    line = {
        "case": "queue-replicated",
        "title": "queue on three disks, 1→1, unsettled, group commit",
        "rate": median(rates),
        "runs": rates,
        "cpu_s_per_million": median(cpu_s),
        "must": _MUST,
        "holds": holds,
        "problems": sorted(set(problems)),
    }
    click.echo(json.dumps(line, ensure_ascii=False))
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()

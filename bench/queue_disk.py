"""A queue on disk, 1→1, unsettled: every message, attempt and claim is durable before it is told.

    python bench/queue_disk.py [--runs N] [--count N] [--serve COMMAND]

Prints one JSON line: the median rate, every run's, CPU seconds a million, what the plain queue in
memory does in the same run, and the limit. The exit code is 1 where it does not hold, or anything
was lost.
"""

from __future__ import annotations

import json
import sys
from statistics import median
from typing import Final

import click
from server import DEFAULT_COMMAND, Server

from cogwork.bench.scenarios import Load, run_scenario

_MUST: Final = 200_000
_MILLION: Final = 1_000_000


class DiskServer(Server):
    """A server whose queues are on disk."""

    head = 'data_dir = "{root}/data"\n'
    tables = '\n[[address]]\nprefix = "queue"\nkind = "queue"\ndurability = "disk"\n'


@click.command()
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1))
@click.option("--count", default=2 * _MILLION, show_default=True, type=click.IntRange(1))
@click.option("--serve", default=DEFAULT_COMMAND, show_default=True, help="{config}, {port}")
def main(runs: int, count: int, serve: str) -> None:
    """Measure a fresh server for each kind of queue."""
    problems: list[str] = []
    rates: dict[str, list[float]] = {"disk": [], "memory": []}
    cpu: dict[str, list[float]] = {"disk": [], "memory": []}
    for name, place in (("disk", DiskServer), ("memory", Server)):
        with place(serve) as server:
            for _ in range(runs):
                result = run_scenario("queue", server.route, Load(count=count))
                rates[name].append(result.rate)
                cpu[name].append(result.cpu_s_per_million or 0.0)
                problems += result.problems
    holds = median(rates["disk"]) >= _MUST and not problems
    line = {
        "case": "queue-disk",
        "title": "queue on disk, 1→1, unsettled, group commit",
        "rate": median(rates["disk"]),
        "runs": rates["disk"],
        "cpu_s_per_million": median(cpu["disk"]),
        "memory_rate": median(rates["memory"]),
        "memory_cpu_s_per_million": median(cpu["memory"]),
        "must": _MUST,
        "holds": holds,
        "problems": sorted(set(problems)),
    }
    click.echo(json.dumps(line, ensure_ascii=False))
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()

"""AMQP 0-9-1, 1→1 through a quorum queue on three containers' disks.

    python bench/basic_quorum.py [--count N] [--size OCTETS] [--runs N]

The clients are those of `basic.py`; in one case they are at the queue's owner, in the other at
another container. What is counted is the CPU of all three. Prints one line of JSON for each case;
the exit code is 1 where one does not hold.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Final

import click
from basic import BATCH, Case, Client, declare, median_of, queue_of, run
from voters import NAMES, Trio, served

import cogwork
from cogwork.bench.usage import ProcessUsage
from cogwork.cli.management.manager import Manager

MUST_RATE: Final = 80_000
OWNER_TIMEOUT_S: Final = 20.0
CASE: Final = Case(
    "quorum, 1000 unconfirmed, prefetch 1000, ack of 100",
    1000,
    0,
    12.0,
    is_durable=True,
    queue_type="quorum",
)


def port_of(trio: Trio, name: str) -> int:
    """Return where a container listens."""
    return int(trio.url(name).rpartition(":")[2])


async def owner_of(trio: Trio) -> str:
    """Return which container owns the queue, once one does."""
    until_s = time.monotonic() + OWNER_TIMEOUT_S
    async with cogwork.connect(trio.url(NAMES[0])) as client:
        while time.monotonic() < until_s:
            rows, _ = await Manager(client).rows("queue", ("address", "owner"))
            owners = [each["owner"] for each in rows if each["address"].endswith(queue_of(CASE))]
            if owners and owners[0]:
                return str(owners[0])
            await asyncio.sleep(0.1)
    raise SystemExit(f"the queue has no owner after {OWNER_TIMEOUT_S:g} s")


@click.command()
@click.option("--count", default=200_000, show_default=True, type=click.IntRange(BATCH))
@click.option("--size", default=100, show_default=True, type=click.IntRange(0))
@click.option("--runs", default=3, show_default=True, type=click.IntRange(1))
def main(count: int, size: int, runs: int) -> None:
    """Measure a quorum queue, from its owner and from elsewhere."""
    count -= count % BATCH
    holds = True
    with served() as trio:
        usage = ProcessUsage(*(process.pid for process in trio.processes.values()))
        declare(Client(port_of(trio, NAMES[0])), CASE)
        owner = asyncio.run(owner_of(trio))
        others = [each for each in NAMES if each != owner]
        for where, name in (("at its owner", owner), ("elsewhere", others[0])):
            port = port_of(trio, name)
            found = median_of([run(port, usage, CASE, size, count) for _ in range(runs)])
            is_met = found["cpu_s_per_million"] <= CASE.must_cpu_s and found["rate"] >= MUST_RATE
            holds = holds and is_met
            line = {
                "case": f"basic, 1→1, {size} B, {CASE.name}, clients {where}",
                **found,
                "must_cpu_s_per_million": CASE.must_cpu_s,
                "must_rate": MUST_RATE,
                "holds": is_met,
            }
            print(json.dumps(line, ensure_ascii=False))
    sys.exit(not holds)


if __name__ == "__main__":
    main()

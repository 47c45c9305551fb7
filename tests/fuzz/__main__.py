"""Feeds containers hostile connections: `python -m fuzz [--count N] [--seed S] [--only K]`.

A failure names the seed and the number of the connection; `--seed S --only K` says it again.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import logging
import multiprocessing
import os
import random
import sys
import time
from typing import TYPE_CHECKING

from fuzz import seeds
from fuzz.mutation import Mutator
from fuzz.victim import Victim

if TYPE_CHECKING:
    from collections.abc import Iterable

CHECK_EVERY = 200
"""Connections between two looks at the bystanders and at what was left behind."""

REPORT_EVERY = 50_000


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="hostile connections")
    parser.add_argument("--seed", type=int, default=None, help="default: a new one each time")
    parser.add_argument("--only", type=int, default=None, help="say only this connection")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    return parser.parse_args()


def say(text: str) -> None:
    sys.stdout.write(f"fuzz: {text}\n")
    sys.stdout.flush()


async def suffer(seed: int, numbers: Iterable[int]) -> None:
    """Have one container suffer the connections with these numbers.

    A connection's bytes follow from the seed and its own number, so that one can be said alone.
    """
    mutator = Mutator(random.Random(seed), seeds.load())
    victim = Victim()
    started_s = time.monotonic()
    for done, number in enumerate(numbers, 1):
        mutator.random.seed(f"{seed}.{number}")
        try:
            await victim.suffer(mutator.conversation(), politely=number % 2 == 0)
            if done % CHECK_EVERY == 1:
                await asyncio.sleep(0)
                victim.check_bystanders()
                victim.check_nothing_left()
        except BaseException:
            say(f"failed at connection {number}: --seed {seed} --only {number}")
            raise
        if done % REPORT_EVERY == 0:
            rate = done / (time.monotonic() - started_s)
            say(f"{done} connections, {rate:.0f} a second")
    victim.check_bystanders()
    victim.check_nothing_left()


def run(seed: int, count: int, jobs: int) -> int:
    """Share the connections out to processes; return how many of these failed."""
    workers = [
        multiprocessing.get_context("fork").Process(
            target=lambda part=part: asyncio.run(suffer(seed, range(part, count, jobs)))
        )
        for part in range(jobs)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(worker.exitcode != 0 for worker in workers)


def main() -> int:
    faulthandler.enable()
    logging.disable(logging.CRITICAL)
    arguments = parse()
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    if arguments.only is not None:
        asyncio.run(suffer(seed, [arguments.only]))
        return 0
    started_s = time.monotonic()
    failed = run(seed, arguments.count, arguments.jobs)
    spent_s = time.monotonic() - started_s
    if failed:
        say(f"failed; --seed {seed} --count {arguments.count} does it again")
        return 1
    say(f"{arguments.count} hostile connections in {spent_s:.0f} s, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())

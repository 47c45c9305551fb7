"""Times a stream on three replicas beside the least that it takes, and beside etcd, in turn.

    python bench/delay.py [--rounds 5] [--seconds 3] [--unix] [--awake]

Of what a delay is, most is the machine's: how long a processor takes to wake up, a disk to
synchronise, a message to get to another process. So each round has one after the other, all on the
same three disks and all with three subscribers in processes of their own:

    many        20,000 messages a second on a stream, in bursts of twenty
    least_many  the same bursts through `quorum.c`: sent on, synchronised, answered, handed out, and
                nothing else
    few         500 messages a second on a stream, one by one
    least_few   the same through `quorum.c`
    etcd        500 puts a second in an etcd of three members, with three watchers

Messages have 100 octets. The first round is not counted. Prints a line of JSON for each round, and
one at the end: the medians of p50 and p99 over the rounds, and those of what a round's figures are
to each other. `make bench` builds what it needs. Where no etcd is installed (Debian's package is
etcd-server), it is left out, with a line on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etcd_delay import served_etcd, timed
from replicated import BURST, LATENCY_RATE, STREAM, delayed, spread
from voters import served

import cogwork
from cogwork.bench.servers.process import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.bench.servers.etcd import EtcdServer

QUORUM = Path(__file__).parent / "build" / "quorum"
SIZE_BYTES = 100
FEW = 500

RATIOS = (
    ("many", "least_many"),
    ("few", "least_few"),
    ("many", "etcd"),
    ("few", "etcd"),
)


def least(rate: int, burst: int, seconds: float) -> dict[str, float]:
    """Return what `quorum.c` takes with so many messages a second, in such bursts."""
    numbers = (burst * SIZE_BYTES, rate // burst, round(seconds))
    command = [str(QUORUM), tempfile.gettempdir(), *map(str, numbers)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    p50_us, p99_us, longest_us = (float(each) for each in output.split())
    return {
        "p50_ms": round(p50_us / 1e3, 3),
        "p99_ms": round(p99_us / 1e3, 3),
        "longest_ms": round(longest_us / 1e3, 3),
    }


async def measure(arguments: argparse.Namespace) -> None:
    """Run the rounds, and print what they have found."""
    seconds, rounds = arguments.seconds, []
    with (
        ExitStack() as stack,
        served(is_unix=arguments.unix, is_awake=arguments.awake) as trio,
    ):
        members = etcd_if_any(stack)
        await trio.declare([STREAM])
        for number in range(arguments.rounds + 1):
            found: dict[str, dict[str, Any]] = {
                "many": await delayed(trio, seconds, SIZE_BYTES),
                "least_many": least(LATENCY_RATE, BURST, seconds),
                "few": await delayed(trio, seconds, SIZE_BYTES, rate=FEW, burst=1),
                "least_few": least(FEW, 1, seconds),
            }
            if members:
                found["etcd"] = spread(timed(members, FEW, seconds))
            if number:
                rounds.append(found)
                _print({"round": number, **found})
    _print(summary(rounds))


def etcd_if_any(stack: ExitStack) -> list[EtcdServer]:
    """Start etcd until the stack is left; return its members, none where it cannot be had."""
    try:
        return stack.enter_context(served_etcd())
    except Missing as error:
        sys.stderr.write(f"without etcd: {error}\n")
        return []


def summary(rounds: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the medians over the rounds, of each figure and of each ratio."""
    figures = ("p50_ms", "p99_ms")
    medians = {
        name: {figure: _median(each[name][figure] for each in rounds) for figure in figures}
        for name in rounds[0]
    }
    ratios = {
        f"{one}_of_{other}": {
            figure: _median(each[one][figure] / each[other][figure] for each in rounds)
            for figure in figures
        }
        for one, other in RATIOS
        if other in rounds[0]
    }
    return {"rounds": len(rounds), "medians": medians, "ratios": ratios}


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 2)


def _print(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--unix", action="store_true")
    parser.add_argument("--awake", action="store_true")
    arguments = parser.parse_args()
    if not QUORUM.exists():
        sys.exit(f"{QUORUM} is not there: `make {QUORUM.relative_to(Path.cwd())}` builds it")
    with asyncio.Runner(loop_factory=cogwork.EventLoop) as runner:
        runner.run(measure(arguments))


if __name__ == "__main__":
    main()

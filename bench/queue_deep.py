"""A queue on disk with far more in it than memory may hold: filled, killed, started, drained.

    python bench/queue_deep.py [--count N] [--size-bytes N] [--memory-bytes N] [--serve COMMAND]

Prints a JSON line for each part: `fill` with the container's memory then, `start` with the seconds
from the start after a kill to a container that listens, `drain`. The exit code is 1 where a limit
does not hold, or a message was lost, doubled or out of order.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

import click
from msgspec import to_builtins
from server import DEFAULT_COMMAND, Server

from cogwork.bench.crew import Crew
from cogwork.bench.jobs import ConsumerJob, ProducerJob

if TYPE_CHECKING:
    from cogwork.bench.jobs import Job, Report

_ADDRESS: Final = "queue/deep"
_DRAIN_MUST: Final = 100_000
_ITEM_MUST_BYTES: Final = 64
_START_MUST_S: Final = 60.0
_MILLION: Final = 1_000_000


class DeepServer(Server):
    """A server whose queues are on disk, and of little memory; killed, it can be started again."""

    head = 'data_dir = "{root}/data"\n'
    start_timeout_s = 3 * _START_MUST_S

    def __init__(self, command: str, memory_bytes: int) -> None:
        """Prepare it; its queues keep so much in memory."""
        super().__init__(command)
        self.tables = (
            '\n[[address]]\nprefix = "queue"\nkind = "queue"\ndurability = "disk"\n'
            "maximum_bytes = 1099511627776\n"
            f"\n[limits]\nqueue_memory_bytes = {memory_bytes}\n"
        )

    def kill(self) -> None:
        """End it as a machine would that loses its power, but for what the kernel has."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _done(job: Job) -> Report:
    """Have a worker do its job."""
    with Crew() as crew:
        worker = crew.hire(job)
        worker.tell("go")
        while worker.report is None:
            crew.listen(1.0)
        return worker.report


@click.command()
@click.option("--count", default=5 * _MILLION, show_default=True, type=click.IntRange(1))
@click.option("--size-bytes", default=1024, show_default=True, type=click.IntRange(1))
@click.option("--memory-bytes", default=256 << 20, show_default=True, type=click.IntRange(1 << 20))
@click.option("--serve", default=DEFAULT_COMMAND, show_default=True, help="{config}, {port}")
def main(count: int, size_bytes: int, memory_bytes: int, serve: str) -> None:
    """Measure one queue."""
    holds = True
    with DeepServer(serve, memory_bytes) as server:
        empty_bytes, cpu_s = server.usage.rss_bytes(), server.usage.cpu_s()
        producer = ProducerJob(
            url=server.route.sender_url(0),
            addresses=[_ADDRESS],
            size_bytes=size_bytes,
            settled=False,
            count=count,
        )
        holds &= _tell("fill", server, _done(producer), cpu_s, count)
        held_bytes = server.usage.rss_bytes() - empty_bytes - memory_bytes
        item_bytes = round(held_bytes / count, 1)
        facts: dict[str, object] = {
            "rss_bytes": server.usage.rss_bytes(),
            "beyond_memory_bytes_per_item": item_bytes,
        }
        holds &= _say("memory", facts, item_bytes <= _ITEM_MUST_BYTES)
        server.kill()
        began_s = time.monotonic()
        server.start()
        start_s = time.monotonic() - began_s
        facts = {"seconds": start_s, "rss_bytes": server.usage.rss_bytes()}
        holds &= _say("start", facts, start_s <= _START_MUST_S)
        cpu_s = server.usage.cpu_s()
        consumer = ConsumerJob(url=server.route.sender_url(0), addresses=[_ADDRESS], count=count)
        report = _done(consumer)
        holds &= _tell("drain", server, report, cpu_s, count)
        holds &= not (report.missing or report.repeated)
    sys.exit(0 if holds else 1)


def _tell(case: str, server: Server, report: Report, cpu_s: float, count: int) -> bool:
    rate = round(count / (report.last_ns - report.first_ns) * 1e9)
    facts: dict[str, object] = {
        "rate": rate,
        "cpu_s_per_million": (server.usage.cpu_s() - cpu_s) / count * _MILLION,
        "rss_bytes": server.usage.rss_bytes(),
        "report": to_builtins(report),
    }
    return _say(case, facts, case != "drain" or rate >= _DRAIN_MUST)


def _say(case: str, facts: dict[str, object], holds: bool) -> bool:
    line = {"case": f"queue-deep-{case}", **facts, "holds": holds}
    click.echo(json.dumps(line))
    return holds


if __name__ == "__main__":
    main()

"""Measures streams as Arrow record batches: rates, and what ten who pull cost the container.

    python bench/arrow.py [--rows 2000000] [--size 256] [--runs 3] [--rounds 8]

It serves a container of its own, with a reader. Prints one line of JSON for each case.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from parties import children, tree_cpu_s

import cogwork
from cogwork import sync
from cogwork.bench.usage import ProcessUsage
from cogwork.client import Message
from cogwork.io.time_slice import set_time_slice
from cogwork.pipeline.arrow import ArrowClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ctypes import c_longlong
    from multiprocessing.synchronize import Event, Semaphore

CASES: dict[str, list[str] | None] = {"all columns": None, "two columns": ["offset", "body"]}
APPEND = 20_000
PULLING = 10
ROUND_S, SETTLE_S = 3.0, 0.5
PACE_S = 0.002
SLICE_US = 100
RATIO_MAX = 2.0


@contextmanager
def served(readers: int) -> Iterator[tuple[str, int]]:
    """Run a container in a process of its own; yield where, and the process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "cogwork.cli.main", "serve", "--listen", "127.0.0.1:0"]
        command += ["--data", folder, "--arrow", str(readers), "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["endpoints"][0], process.pid
        finally:
            process.terminate()
            process.wait()


def fill(url: str, rows: int, size: int) -> None:
    """Make the stream."""
    command = [sys.executable, "-m", "cogwork.cli.main", "stream", "create", url, "bench"]
    subprocess.run([*command, "--engine", "raft"], check=True, stdout=subprocess.DEVNULL)
    chance = random.Random(1)
    with sync.connect(url) as client:
        for at in range(0, rows, APPEND):
            client.stream("bench").append(
                Message(
                    chance.randbytes(size),
                    subject="orders.new",
                    to="stream/bench",
                    content_type="application/octet-stream",
                    properties={"carrier": "UA", "delay": number % 100},
                )
                for number in range(at, min(at + APPEND, rows))
            )


def readers_cpu_s(pid: int) -> float:
    """Return what a container's readers have taken."""
    return sum(map(tree_cpu_s, children(pid)))


def read(url: str, rows: int, columns: list[str] | None) -> float:
    """Read all; return how long it took."""
    since_s = time.perf_counter()
    with ArrowClient(url) as client:
        found = sum(batch.num_rows for batch in client.read("bench", 0, rows, columns))
    assert found == rows
    return time.perf_counter() - since_s


def rates(url: str, pid: int, arguments: argparse.Namespace) -> None:
    for name, columns in CASES.items():
        reader_s, client_s = readers_cpu_s(pid), time.process_time()
        passed = [read(url, arguments.rows, columns) for _ in range(arguments.runs)]
        millions = arguments.runs * arguments.rows / 1e6
        line = {
            "case": name,
            "rows": arguments.rows,
            "size_bytes": arguments.size,
            "rows_per_s": round(arguments.rows / median(passed)),
            "reader_cpu_s_a_million": round((readers_cpu_s(pid) - reader_s) / millions, 3),
            "client_cpu_s_a_million": round((time.process_time() - client_s) / millions, 3),
        }
        print(json.dumps(line), flush=True)


class Told(NamedTuple):
    """What those who pull are told, and tell."""

    go: Event
    end: Event
    begun: Semaphore


class Pulling:
    """Ten processes that read again and again, while they are told to.

    They stand for other machines, and share this one with the container all the same.

    Attributes:
        rows: How many each has had.
    """

    def __init__(self, url: str, rows: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.told = Told(context.Event(), context.Event(), context.Semaphore(0))
        self.rows = [context.Value("q", 0, lock=False) for _ in range(PULLING)]
        arguments = (url, rows, self.told)
        self.processes = [context.Process(target=pull, args=(*arguments, had)) for had in self.rows]

    def __enter__(self) -> Pulling:
        self.told.go.set()
        for process in self.processes:
            process.start()
        for _ in self.processes:
            self.told.begun.acquire()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.told.end.set()
        self.told.go.set()
        for process in self.processes:
            process.join()


def pull(url: str, rows: int, told: Told, had: c_longlong) -> None:
    """Read, standing back behind what is measured."""
    os.nice(10)
    with ArrowClient(url) as client:
        while not told.end.is_set():
            for number, batch in enumerate(client.read("bench", 0, rows)):
                if number == 0:
                    told.begun.release()
                had.value += batch.num_rows
                told.go.wait()
                if told.end.is_set():
                    return


async def latencies(url: str, seconds: float) -> list[float]:
    """Send messages through a topic at an even pace; return how long each took."""
    found: list[float] = []
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/paced") as messages,
        client.publisher("topic/paced") as publisher,
    ):
        end_s = time.perf_counter() + seconds
        while (sent_s := time.perf_counter()) < end_s:
            publisher.post(b"x" * 100, settled=True)
            await messages.take(1)
            found.append(time.perf_counter() - sent_s)
            await asyncio.sleep(PACE_S)
    return found


def quantile_us(found: list[float], share: float) -> float:
    return sorted(found)[int(len(found) * share)] * 1e6


def wait_until_still(pid: int) -> None:
    """Wait until readers have sent what their clients have room for."""
    before_s = -1.0
    while (now_s := readers_cpu_s(pid)) != before_s:
        before_s = now_s
        time.sleep(SETTLE_S)


def while_ten_pull(url: str, pid: int, arguments: argparse.Namespace) -> None:
    """Measure routing with and without those who pull, in turn: both meet the same machine.

    What is told is the median of the rounds, and of their ratios.
    """
    alone, beside, rates_beside = [], [], []
    usage = ProcessUsage(pid)
    before_bytes, extra_bytes = usage.rss_bytes(), 0
    with Pulling(url, arguments.rows) as pulling:
        # It is the container's waiting that is measured, not that of whoever measures.
        set_time_slice(SLICE_US)
        for _ in range(arguments.rounds):
            pulling.told.go.set()
            time.sleep(SETTLE_S)
            had, since_s = sum(each.value for each in pulling.rows), time.perf_counter()
            beside.append(asyncio.run(latencies(url, ROUND_S)))
            had = sum(each.value for each in pulling.rows) - had
            rates_beside.append(had / (time.perf_counter() - since_s))
            extra_bytes = max(extra_bytes, usage.rss_bytes() - before_bytes)
            pulling.told.go.clear()
            wait_until_still(pid)
            alone.append(asyncio.run(latencies(url, ROUND_S)))
        set_time_slice(0)
    line: dict[str, Any] = {
        "case": "ten pull",
        "extra_memory_mib": round(extra_bytes / (1 << 20), 1),
    }
    line["rows_per_s"] = round(median(rates_beside))
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        pairs = [
            (quantile_us(with_them, share), quantile_us(without, share))
            for with_them, without in zip(beside, alone, strict=True)
        ]
        ratios = [with_them / without for with_them, without in pairs]
        line |= {
            f"{name}_us": round(median(with_them for with_them, _ in pairs)),
            f"{name}_us_alone": round(median(without for _, without in pairs)),
            f"{name}_ratio": round(median(ratios), 2),
            f"{name}_ratios": [round(ratio, 2) for ratio in sorted(ratios)],
        }
    line |= {"must": RATIO_MAX, "holds": line["p99_ratio"] <= RATIO_MAX}
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    with served(1) as (url, pid):
        fill(url, arguments.rows, arguments.size)
        if arguments.runs:
            rates(url, pid, arguments)
        while_ten_pull(url, pid, arguments)


if __name__ == "__main__":
    main()

"""Measures streams as Arrow record batches: rates, and what ten who pull cost the container.

    python bench/arrow.py [--rows 2000000] [--size 256] [--runs 3]

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
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import cogwork
from cogwork import sync
from cogwork.arrow import ArrowClient
from cogwork.client import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES: dict[str, list[str] | None] = {"all columns": None, "two columns": ["offset", "body"]}
APPEND = 20_000
PULLING = 10
PULL_S = 8.0
PACE_S = 0.002
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@contextmanager
def served(readers: int) -> Iterator[tuple[str, int]]:
    """Runs a container in a process of its own; yields where, and the process."""
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
    """Makes the stream."""
    command = [sys.executable, "-m", "cogwork.cli.main", "stream", "create", url, "bench"]
    subprocess.run([*command, "--engine", "raft"], check=True, stdout=subprocess.DEVNULL)
    chance = random.Random(1)
    with sync.connect(url) as mesh:
        for at in range(0, rows, APPEND):
            mesh.stream("bench").append(
                Message(
                    chance.randbytes(size),
                    subject="orders.new",
                    to="stream/bench",
                    content_type="application/octet-stream",
                    properties={"carrier": "UA", "delay": number % 100},
                )
                for number in range(at, min(at + APPEND, rows))
            )


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def cpu_s(pids: list[int]) -> float:
    """Returns the CPU seconds that processes have taken."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS_PER_S


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


def read(url: str, rows: int, columns: list[str] | None) -> float:
    """Reads all; returns how long it took."""
    since_s = time.perf_counter()
    with ArrowClient(url) as client:
        found = sum(batch.num_rows for batch in client.read("bench", 0, rows, columns))
    assert found == rows
    return time.perf_counter() - since_s


def rates(url: str, pid: int, arguments: argparse.Namespace) -> None:
    for name, columns in CASES.items():
        reader_s, client_s = cpu_s(children(pid)), time.process_time()
        passed = [read(url, arguments.rows, columns) for _ in range(arguments.runs)]
        millions = arguments.runs * arguments.rows / 1e6
        line = {
            "case": name,
            "rows": arguments.rows,
            "size_bytes": arguments.size,
            "rows_per_s": round(arguments.rows / median(passed)),
            "reader_cpu_s_a_million": round((cpu_s(children(pid)) - reader_s) / millions, 3),
            "client_cpu_s_a_million": round((time.process_time() - client_s) / millions, 3),
        }
        print(json.dumps(line), flush=True)


def pull(url: str, rows: int, until_s: float) -> None:
    """Reads again and again, standing back behind what is measured."""
    os.nice(10)
    with ArrowClient(url) as client:
        while True:
            for _ in client.read("bench", 0, rows):
                if time.time() > until_s:
                    return


async def latencies(url: str, seconds: float) -> list[float]:
    """Sends messages through a topic at an even pace; returns how long each took."""
    found: list[float] = []
    async with (
        cogwork.connect(url) as mesh,
        mesh.subscribe("topic/paced") as messages,
        mesh.publisher("topic/paced") as publisher,
    ):
        end_s = time.perf_counter() + seconds
        while (sent_s := time.perf_counter()) < end_s:
            publisher.post(b"x" * 100, settled=True)
            await messages.take(1)
            found.append(time.perf_counter() - sent_s)
            await asyncio.sleep(PACE_S)
    return found


def quantile_us(found: list[float], share: float) -> int:
    return round(sorted(found)[int(len(found) * share)] * 1e6)


def while_ten_pull(url: str, pid: int, arguments: argparse.Namespace) -> None:
    alone = asyncio.run(latencies(url, PULL_S))
    before_mib = resident_mib(pid)
    context = multiprocessing.get_context("spawn")
    until_s = time.time() + PULL_S + 4.0
    pulling = [
        context.Process(target=pull, args=(url, arguments.rows, until_s)) for _ in range(PULLING)
    ]
    for process in pulling:
        process.start()
    time.sleep(3.0)
    beside = asyncio.run(latencies(url, PULL_S))
    extra_mib = resident_mib(pid) - before_mib
    for process in pulling:
        process.join()
    line: dict[str, Any] = {
        "case": "ten pull",
        "extra_memory_mib": round(extra_mib, 1),
        "p50_us_alone": quantile_us(alone, 0.5),
        "p50_us": quantile_us(beside, 0.5),
        "p99_us_alone": quantile_us(alone, 0.99),
        "p99_us": quantile_us(beside, 0.99),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    with served(1) as (url, pid):
        fill(url, arguments.rows, arguments.size)
        rates(url, pid, arguments)
        while_ten_pull(url, pid, arguments)


if __name__ == "__main__":
    main()

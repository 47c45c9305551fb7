"""Measures calls through one container, beside python-qpid-proton doing the same.

    python bench/rpc.py [--calls 20000] [--outstanding 64] [--case NAME ...]

A client process calls a service process through a container process. Prints one line of JSON: for
each case the p50 of one call at a time, and the calls a second with many outstanding, with the CPU
seconds that each process spent on a thousand of these.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from bench_proton import proton_client, proton_service

import cogwork
from cogwork.bench.usage import ProcessUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WARM_UP = 300
CASES = ("coroutine", "function", "direct", "proton")


@contextmanager
def started(command: list[str]) -> Iterator[tuple[dict[str, Any], int]]:
    """Run a process; yield the first line that it prints, and its id."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline()), process.pid
    finally:
        process.terminate()
        process.wait()


async def serve(url: str) -> None:
    """Is the service."""
    async with cogwork.connect(url, direct=True) as client:
        service = client.service("bench", server="bench")

        @service.method
        async def coroutine(n: int) -> int:
            return n

        @service.method
        def function(n: int) -> int:
            return n

        async with service:
            print(json.dumps({"pid": os.getpid()}), flush=True)
            await service.wait()


async def run_client(
    url: str, method: str, calls: int, outstanding: int, pids: list[int]
) -> dict[str, Any]:
    """Is the client; returns what it measured."""
    is_direct = method == "direct"
    method = "function" if is_direct else method
    async with cogwork.connect(url, direct=is_direct) as client:
        waits_s = await single(client, method, WARM_UP)
        waits_s = await single(client, method, calls // 10)
        ratio = {"p50_of_routed": await against_routed(client, url, calls)} if is_direct else {}
        left = iter(range(calls))

        async def caller() -> None:
            for n in left:
                assert await client.call("bench", method, n=n) == n

        return {
            **latency(waits_s),
            **ratio,
            **await rate(
                lambda: asyncio.gather(*(caller() for _ in range(outstanding))), calls, pids
            ),
        }


async def single(client: cogwork.Client, method: str, calls: int) -> list[float]:
    """Call one at a time; return what each took."""
    waits_s = []
    for n in range(calls):
        began_s = time.perf_counter()
        await client.call("bench", method, n=n)
        waits_s.append(time.perf_counter() - began_s)
    return waits_s


async def against_routed(direct: cogwork.Client, url: str, calls: int) -> float:
    """Call directly and through the container in turn; return the ratio of the medians."""
    async with cogwork.connect(url) as routed:
        took: dict[cogwork.Client, list[float]] = {direct: [], routed: []}
        for _ in range(max(calls // 500, 10)):
            for client in took:
                took[client] += await single(client, "function", 50)
        return round(median(took[direct]) / median(took[routed]), 3)


def latency(waits_s: list[float]) -> dict[str, float]:
    """Sum up what single calls took."""
    return {
        "p50_us": round(median(waits_s) * 1e6, 1),
        "p99_us": round(quantiles(waits_s, n=100)[98] * 1e6, 1),
    }


async def rate(work: Callable[[], Any], calls: int, pids: list[int]) -> dict[str, Any]:
    """Measure calls side by side."""
    processes = [ProcessUsage(pid) for pid in pids]
    before = [each.cpu_s() for each in processes]
    began_s = time.perf_counter()
    await work()
    took_s = time.perf_counter() - began_s
    spent = [
        round((each.cpu_s() - then) * 1000 / calls, 4)
        for each, then in zip(processes, before, strict=True)
    ]
    return {
        "calls_per_s": round(calls / took_s),
        "cpu_s_per_1000": dict(zip(("container", "service", "client"), spent, strict=True)),
    }


def run_case(case: str, options: argparse.Namespace, url: str, container: int) -> dict[str, Any]:
    """Run a service and a client."""
    me = str(Path(__file__))
    kind = "proton" if case == "proton" else "cogwork"
    with started([me, "--role", f"{kind}-service", "--url", url]) as (_, service):
        command = [me, "--role", f"{kind}-client", "--url", url, "--case", case]
        command += ["--calls", str(options.calls), "--outstanding", str(options.outstanding)]
        command += ["--pids", f"{container},{service}"]
        with started(command) as (found, _):
            return found


def play(options: argparse.Namespace) -> None:
    """Is one of the processes."""
    pids = [int(pid) for pid in options.pids.split(",") if pid]
    case, calls = (options.case or ["function"])[0], options.calls
    if options.role == "cogwork-service":
        asyncio.run(serve(options.url))
    elif options.role == "proton-service":
        proton_service(options.url)
    elif options.role == "proton-client":
        waits_s, measured = proton_client(options.url, calls, options.outstanding, WARM_UP)
        found = asyncio.run(rate(measured, calls, [*pids, os.getpid()]))
        print(json.dumps({**latency(waits_s), **found}), flush=True)
    else:
        work = run_client(options.url, case, calls, options.outstanding, [*pids, os.getpid()])
        print(json.dumps(asyncio.run(work)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--outstanding", type=int, default=64)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--role")
    parser.add_argument("--url")
    parser.add_argument("--pids", default="")
    options = parser.parse_args()
    if options.role:
        play(options)
        return
    serving = ["-m", "cogwork.cli.main", "serve", "--listen", "127.0.0.1:0", "--json"]
    with started(serving) as (said, pid):
        url = said["endpoints"][0]
        found = {case: run_case(case, options, url, pid) for case in options.case or CASES}
    line = {"bench": "rpc", "calls": options.calls, "outstanding": options.outstanding, **found}
    print(json.dumps({**line, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()

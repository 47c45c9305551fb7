"""Measures RPC of oslo.messaging: this driver on a container, and the rabbit driver on RabbitMQ.

    python bench/oslo.py [--calls 1000] [--threads 16] [--rounds 3]

For each of them a client process calls a server process through a broker process: one call at a
time, and by so many threads at once. Both brokers stand while the rounds alternate. Prints one line
of JSON: the medians over the rounds of p50 and of calls a second, and how they compare.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__)
TESTS = HERE.parents[1] / "tests"
WARM_UP = 100
TOPIC = "bench"


def serve(url: str) -> None:
    """Run a server until its standard input ends."""
    import oslo_messaging  # noqa: PLC0415  # only in these processes
    from oslo_config import cfg  # noqa: PLC0415  # only in these processes

    class Endpoint:
        def echo(self, _context: object, text: str) -> str:
            return text

    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=url)
    target = oslo_messaging.Target(topic=TOPIC, server="one")
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    print("serving", flush=True)
    sys.stdin.read()
    server.stop()
    server.wait()
    transport.cleanup()


def call(url: str, calls: int, threads: int) -> None:
    """Make the calls, and print what they took."""
    import oslo_messaging  # noqa: PLC0415  # only in these processes
    from oslo_config import cfg  # noqa: PLC0415  # only in these processes

    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=url)
    client = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(topic=TOPIC))

    def work(count: int) -> list[float]:
        taken_s = []
        for _ in range(count):
            began_s = time.perf_counter()
            client.call({}, "echo", text="hello")
            taken_s.append(time.perf_counter() - began_s)
        return taken_s

    work(WARM_UP)
    p50_s = median(work(calls))
    share = calls // threads
    workers = [threading.Thread(target=work, args=(share,)) for _ in range(threads)]
    began_s, cpu_s = time.perf_counter(), time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    wall_s = time.perf_counter() - began_s
    figures = {
        "p50_us": p50_s * 1e6,
        "calls_per_s": share * threads / wall_s,
        "client_cpu_us": (time.process_time() - cpu_s) / (share * threads) * 1e6,
    }
    print(json.dumps(figures), flush=True)
    transport.cleanup()


@contextmanager
def server_of(url: str) -> Iterator[None]:
    """A server in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(HERE), "--serve", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"serving\n"
    try:
        yield
    finally:
        process.stdin.close()
        process.wait(20)


def measure(url: str, calls: int, threads: int) -> dict[str, float]:
    """Run one client."""
    command = [sys.executable, str(HERE), "--call", url]
    command += ["--calls", str(calls), "--threads", str(threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(calls: int, threads: int, rounds: int) -> dict[str, object]:
    """Run both, round after round."""
    sys.path[:0] = [str(TESTS)]
    from rabbitmq import RabbitMq  # noqa: PLC0415  # of the tests
    from system.served import served  # noqa: PLC0415  # of the tests

    with tempfile.TemporaryDirectory() as folder:
        broker = RabbitMq(Path(folder) / "rabbitmq")
        broker.start()
        try:
            with served(Path(folder)) as container:
                urls = {"cogwork": f"{container.url}/", "rabbit": f"rabbit://{broker.hosts}/"}
                with server_of(urls["cogwork"]), server_of(urls["rabbit"]):
                    found: dict[str, list[dict[str, float]]] = {name: [] for name in urls}
                    for _ in range(rounds):
                        for name, url in urls.items():
                            found[name].append(measure(url, calls, threads))
        finally:
            broker.kill()
    medians = {
        name: {key: round(median(each[key] for each in rows), 1) for key in rows[0]}
        for name, rows in found.items()
    }
    ours, theirs = medians["cogwork"], medians["rabbit"]
    return {
        **medians,
        "p50_ratio": round(ours["p50_us"] / theirs["p50_us"], 3),
        "calls_ratio": round(ours["calls_per_s"] / theirs["calls_per_s"], 3),
        "threads": threads,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Read the arguments."""
    warnings.simplefilter("ignore")  # oslo.messaging's, of its executors
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--call", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
    elif given.call:
        call(given.call, given.calls, given.threads)
    else:
        print(json.dumps(compare(given.calls, given.threads, given.rounds)))


if __name__ == "__main__":
    main()

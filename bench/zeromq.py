"""Measures the round trip of a call through the ZeroMQ gateway, beside plain pyzmq, in one run.

    python bench/zeromq.py [--calls 3000] [--rounds 5] [--size 100]

The same JSON body goes from a client's DEALER to a service and back, one call at a time: straight
to a ROUTER that answers, over a broker of ROUTER and DEALER, which is once a loop in Python that
polls and once ZeroMQ's own in C (`zmq.proxy`), and through the gateway of a container. Each has a
process of its own, as has the service. Rounds alternate between the four. Prints one line of JSON:
medians in microseconds, the processor's time of whatever stands in the middle, and the ratios.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

import zmq

from cogwork.bench.usage import ProcessUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

WARM_UP = 200
TIMEOUT_MS = 20_000


def answer_plainly(pipe: Connection) -> None:
    """Answer whatever comes to a ROUTER."""
    socket = zmq.Context().socket(zmq.ROUTER)
    pipe.send(socket.bind_to_random_port("tcp://127.0.0.1"))
    while True:
        route, body = socket.recv_multipart()
        json.loads(body)
        socket.send_multipart([route, body])


def pass_on(pipe: Connection) -> None:
    """Pass messages on between a ROUTER and a DEALER."""
    context = zmq.Context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    ports = [each.bind_to_random_port("tcp://127.0.0.1") for each in (front, back)]
    pipe.send(ports)
    poller = zmq.Poller()
    poller.register(front, zmq.POLLIN)
    poller.register(back, zmq.POLLIN)
    while True:
        for socket, _ in poller.poll():
            (back if socket is front else front).send_multipart(socket.recv_multipart())


def pass_on_in_c(pipe: Connection) -> None:
    """Have ZeroMQ's own loop pass messages on between a ROUTER and a DEALER."""
    context = zmq.Context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    pipe.send([each.bind_to_random_port("tcp://127.0.0.1") for each in (front, back)])
    zmq.proxy(front, back)


def answer_behind_proxy(port: int) -> None:
    """Answer what comes by the proxy."""
    socket = zmq.Context().socket(zmq.DEALER)
    socket.connect(f"tcp://127.0.0.1:{port}")
    while True:
        route, body = socket.recv_multipart()
        json.loads(body)
        socket.send_multipart([route, body])


class Client:
    """A client of the gateway, by docs/zeromq.md."""

    def __init__(self, endpoint: str) -> None:
        self.socket = dealer(endpoint)
        self.session = b""
        self.session = json.loads(self.ask(b"HELLO", {})[3])["session"].encode()

    def ask(self, verb: bytes, header: dict[str, Any], *body: bytes) -> list[bytes]:
        self.send(verb, header, *body)
        return self.socket.recv_multipart()

    def send(self, verb: bytes, header: dict[str, Any], *body: bytes) -> None:
        frames = [b"COG1", verb, self.session, json.dumps(header).encode(), *body]
        self.socket.send_multipart(frames)


def dealer(endpoint: str) -> zmq.Socket[bytes]:
    """Connect a DEALER."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    socket.linger = 0
    socket.rcvtimeo = TIMEOUT_MS
    socket.connect(endpoint)
    return socket


def answer_by_gateway(endpoint: str, pipe: Connection) -> None:
    """Answer as a service of the gateway."""
    client = Client(endpoint)
    assert client.ask(b"REGISTER", {"id": 1, "to": "echo"})[1] == b"DONE"
    client.socket.rcvtimeo = -1
    pipe.send(0)
    while True:
        frames = client.socket.recv_multipart()
        json.loads(frames[4])
        client.send(b"REPLY", {"id": json.loads(frames[3])["id"]}, frames[4])


@contextmanager
def started(target: Callable[..., None], *arguments: object) -> Iterator[int | None]:
    """Run a function in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    try:
        yield process.pid
    finally:
        process.kill()
        process.join()


@contextmanager
def container() -> Iterator[tuple[str, int]]:
    """Run a container with a gateway; yield the socket of RoundRobin, and the process."""
    kinds = ("peer2peer", "roundrobin", "pubsub")
    lines = "".join(f'{kind} = "tcp://127.0.0.1:0"\n' for kind in kinds)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(f"[gateway.zeromq]\n{lines}")
        file.flush()
        command = [sys.executable, "-m", "cogwork.cli.main", "serve", "--listen", "127.0.0.1:0"]
        command += ["--config", file.name, "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert process.stdout is not None
            facts = json.loads(process.stdout.readline())
            yield facts["gateways"]["zeromq"][1], process.pid
        finally:
            process.terminate()
            process.wait()


def round_of(call: Callable[[], object], count: int) -> float:
    """Return the median of some calls, in seconds."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return median(times)


def measure(calls: int, rounds: int, size: int) -> dict[str, Any]:
    """Measure all four."""
    body = json.dumps({"text": "x" * size}).encode()
    here, there = multiprocessing.Pipe()
    in_c, of_c = multiprocessing.Pipe()
    with (
        started(answer_plainly, there),
        started(pass_on, there) as proxy,
        started(pass_on_in_c, of_c) as c_proxy,
        container() as (endpoint, gateway),
    ):
        found = [here.recv(), here.recv()]
        plain = next(each for each in found if isinstance(each, int))
        front, back = next(each for each in found if isinstance(each, list))
        c_front, c_back = in_c.recv()
        with (
            started(answer_behind_proxy, back),
            started(answer_behind_proxy, c_back),
            started(answer_by_gateway, endpoint, there),
        ):
            here.recv()
            straight = dealer(f"tcp://127.0.0.1:{plain}")
            proxied = dealer(f"tcp://127.0.0.1:{front}")
            c_proxied = dealer(f"tcp://127.0.0.1:{c_front}")
            client = Client(endpoint)

            def ask(socket: zmq.Socket[bytes]) -> None:
                socket.send(body)
                json.loads(socket.recv_multipart()[-1])

            def call() -> None:
                result = client.ask(b"CALL", {"id": 1, "to": "echo"}, body)
                assert result[1] == b"RESULT", result
                json.loads(result[4])

            cases: dict[str, tuple[Callable[[], None], int | None]] = {
                "plain": (lambda: ask(straight), None),
                "proxy": (lambda: ask(proxied), proxy),
                "c_proxy": (lambda: ask(c_proxied), c_proxy),
                "gateway": (call, gateway),
            }
            return compare(cases, calls, rounds)


def compare(
    cases: dict[str, tuple[Callable[[], None], int | None]], calls: int, rounds: int
) -> dict[str, Any]:
    """Measure each case in turn, round by round."""
    medians: dict[str, list[float]] = {name: [] for name in cases}
    used: dict[str, float] = dict.fromkeys(cases, 0.0)
    usages = {
        name: ProcessUsage() if process is None else ProcessUsage(process)
        for name, (_, process) in cases.items()
    }
    for run, _ in cases.values():
        round_of(run, WARM_UP)
    for _ in range(rounds):
        for name, (run, _) in cases.items():
            before = usages[name].cpu_s()
            medians[name].append(round_of(run, calls // rounds))
            used[name] += usages[name].cpu_s() - before
    best = {name: median(values) for name, values in medians.items()}
    return {
        "case": "ZeroMQ round trip",
        "calls": calls,
        **{f"{name}_us": round(value * 1e6, 1) for name, value in best.items()},
        "proxy_cpu_us": round(used["proxy"] / calls * 1e6, 1),
        "c_proxy_cpu_us": round(used["c_proxy"] / calls * 1e6, 1),
        "gateway_cpu_us": round(used["gateway"] / calls * 1e6, 1),
        "gateway_to_plain": round(best["gateway"] / best["plain"], 2),
        "gateway_to_proxy": round(best["gateway"] / best["proxy"], 2),
        "gateway_to_c_proxy": round(best["gateway"] / best["c_proxy"], 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=100)
    options = parser.parse_args()
    print(json.dumps(measure(options.calls, options.rounds, options.size)))

"""Measures a stream on three replicas, each in a container with a disk, with real clients.

    python bench/replicated.py [--case NAME]... [--runs 1] [--seconds 5] [--kills 5] [--away]
        [--burst 20] [--unix] [--awake]

Three containers, linked with each other, on this machine; one client appends at the leader's
container (with --away at another one), and each container has one subscriber, in a process of its
own. With --unix all of them are linked and reached by Unix-domain sockets in the place of TCP, with
--awake the containers keep the processors awake (`keep_awake`).
Prints a line of JSON for each run of each case:

    batches     messages a second, in batches of a thousand
    single      the same, appended one by one
    replay      messages a second read again by one subscriber
    delay       from an append to its delivery, at a given rate
    killed      the longest gap that a subscriber sees when the leader is killed
    stopped     the same when it is stopped
    active      batches on one stream, and on --streams of them together
    beside      from an append to its answer, and elections, beside as much topic traffic as goes
    idle        what --streams that nobody uses cost a container

and with each of them the CPU seconds of containers, subscribers and the appending client a million
messages, where messages are counted. The first line has what everybody waits for: the time of one
small fdatasync, and of one way to another process and back, over TCP. TMPDIR says where the data
are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from voters import LOOKED_S, NAMES, Subscribers, served

import cogwork
from cogwork.bench.crew import Crew
from cogwork.bench.jobs import ConsumerJob, ProducerJob

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from voters import Trio

    from cogwork.client import StreamPublisher

STREAM = "bench"
CASES = ("batches", "replay", "single", "delay", "killed", "stopped", "beside", "active", "idle")
BATCH = 1_000
UNDER_WAY = 16
LATENCY_RATE = 20_000
BURST = 20
LONELY_S = 0.01
"""Between two appends that are timed one by one."""

ECHO = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    while data := peer.recv(100):
        peer.sendall(data)
"""
"""What sends back what comes."""

REST_S = 15.0
"""Until streams that nobody uses any more are at rest."""


class Meter:
    """Counts CPU seconds of containers, of subscribers, and of this process."""

    def __init__(self, trio: Trio, subscribers: Subscribers | None = None) -> None:
        self._trio = trio
        self._subscribers = subscribers
        self._from = self._now()

    def _now(self) -> tuple[float, float, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        theirs = 0.0 if self._subscribers is None else self._subscribers.cpu_s()
        return self._trio.cpu_s(), theirs, used.ru_utime + used.ru_stime

    def a_million(self, count: int) -> dict[str, float]:
        """Return what was used since the meter was made, for each million of messages."""
        containers, theirs, own = (
            round((now - then) / count * 1e6, 2)
            for now, then in zip(self._now(), self._from, strict=True)
        )
        return {
            "cpu_s_a_million": round(containers + theirs, 2),
            "containers_cpu_s": containers,
            "subscribers_cpu_s": theirs,
            "client_cpu_s": own,
        }


# -- cases


async def appended(trio: Trio, seconds: float, size: int, *, batch: int) -> dict[str, Any]:
    """Append for some time, as fast as is taken; wait until everybody has everything."""
    subscribers = Subscribers(trio, STREAM)
    body = bytes(size)
    count = 0
    url = await trio.url_for(STREAM)
    async with cogwork.connect(url) as client, client.stream(STREAM).publisher() as publisher:
        meter = Meter(trio, subscribers)
        start_s = time.perf_counter()
        end_s = start_s + seconds
        if batch == 1:
            while time.perf_counter() < end_s:
                for _ in range(200):
                    publisher.post(body)
                count += 200
                await publisher.ready()
        else:
            count = await in_batches([publisher], body, end_s, batch)
        await publisher.flush()
        passed_s = time.perf_counter() - start_s
        await asyncio.sleep(1.0)
        used = meter.a_million(count)
    found = await asyncio.to_thread(subscribers.end)
    return {
        "messages": count,
        "messages_per_s": round(count / passed_s),
        **used,
        "delivered": [each["count"] for each in found],
        "out_of_order": sum(each["out_of_order"] for each in found),
    }


async def in_batches(
    publishers: list[StreamPublisher], body: bytes, end_s: float, batch: int
) -> int:
    """Post batches by each publisher in turn, with some under way; return how many messages."""
    bodies, under_way, count = [body] * batch, [], 0
    while time.perf_counter() < end_s:
        for publisher in publishers:
            under_way.append(publisher.post_batch(bodies))
            count += batch
            if len(under_way) > UNDER_WAY:
                await under_way.pop(0)
    for each in under_way:
        await each
    return count


async def replayed(trio: Trio, seconds: float, size: int) -> dict[str, Any]:
    """Read everything once more from the beginning, in batches, at the leader's container."""
    (row,) = await trio.rows([STREAM])
    if row["next"] == row["first"]:
        await appended(trio, seconds, size, batch=BATCH)
        await asyncio.sleep(LOOKED_S)
        (row,) = await trio.rows([STREAM])
    count, missing = 0, row["next"] - row["first"]
    async with cogwork.connect(trio.url(row["leader"])) as client:
        start_s = time.perf_counter()
        async for records in client.stream(STREAM).read_batches("first"):
            count += len(records)
            if count >= missing:
                break
        passed_s = time.perf_counter() - start_s
    return {"messages": count, "messages_per_s": round(count / passed_s)}


async def delayed(
    trio: Trio, seconds: float, size: int, *, rate: int = LATENCY_RATE, burst: int = BURST
) -> dict[str, Any]:
    """Append so many a second, in bursts, and see when they are delivered."""
    subscribers = Subscribers(trio, STREAM)
    url = await trio.url_for(STREAM)
    async with cogwork.connect(url) as client, client.stream(STREAM).publisher() as publisher:
        meter = Meter(trio, subscribers)
        start_s = time.monotonic()
        sent = 0
        while time.monotonic() - start_s < seconds:
            stamp = time.monotonic_ns().to_bytes(8, "big")
            body = stamp + bytes(max(0, size - len(stamp)))
            for _ in range(burst):
                publisher.post(body)
            sent += burst
            await asyncio.sleep(max(0.0, start_s + sent / rate - time.monotonic()))
        await publisher.flush()
        await asyncio.sleep(0.5)
        used = meter.a_million(sent)
    found = await asyncio.to_thread(subscribers.end)
    delays = [delay for each in found for delay in each["delays"]]
    return {"rate": round(sent / seconds), **spread(delays), **used}


def spread(times_s: list[float]) -> dict[str, float]:
    ordered = sorted(times_s)
    return {
        "p50_ms": round(ordered[len(ordered) // 2] * 1e3, 2),
        "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1e3, 2),
        "longest_ms": round(ordered[-1] * 1e3, 2),
    }


# -- many streams


async def active(trio: Trio, count: int, seconds: float, size: int) -> dict[str, Any]:
    """Append batches to one stream, then to many together, each at its leader's container."""
    names = [f"active{number}" for number in range(count)]
    await trio.declare(names)
    one = await together(trio, names[:1], seconds, size)
    all_of_them = await together(trio, names, seconds, size)
    share = all_of_them["messages_per_s"] / one["messages_per_s"]
    return {"streams": count, "share": round(share, 2), "together": all_of_them, "one": one}


async def together(trio: Trio, names: list[str], seconds: float, size: int) -> dict[str, Any]:
    leaders = [row["leader"] for row in await trio.rows(names)]
    async with AsyncExitStack() as stack:
        meshes = {
            name: await stack.enter_async_context(cogwork.connect(trio.url(name)))
            for name in sorted(set(leaders))
        }
        publishers = [
            await stack.enter_async_context(meshes[leader].stream(name).publisher())
            for name, leader in zip(names, leaders, strict=True)
        ]
        meter = Meter(trio)
        start_s = time.perf_counter()
        count = await in_batches(publishers, bytes(size), start_s + seconds, BATCH)
        passed_s = time.perf_counter() - start_s
        return {"messages_per_s": round(count / passed_s), **meter.a_million(count)}


async def idle(trio: Trio, count: int, seconds: float) -> dict[str, Any]:
    """Declare streams that nobody uses; what a container takes with them, and do."""
    before_bytes = trio.memory_bytes()
    await trio.declare([f"idle{number}" for number in range(count)])
    await asyncio.sleep(REST_S)
    cpu_s = trio.cpu_s()
    await asyncio.sleep(seconds)
    cpu_s = trio.cpu_s() - cpu_s
    return {
        "streams": count,
        "mb": [round(each / 1e6) for each in trio.memory_bytes()],
        "mb_before": [round(each / 1e6) for each in before_bytes],
        "cpu_share": round(cpu_s / seconds / len(NAMES), 3),
    }


# -- beside other traffic


async def beside(trio: Trio, seconds: float, size: int) -> dict[str, Any]:
    """Time appends while every container has a topic's publisher and subscriber to serve."""
    terms = trio.terms()
    with Crew() as crew:
        topic = f"topic/beside.{os.getpid():x}"
        for name in NAMES:
            job = ConsumerJob(url=trio.url(name), addresses=[f"{topic}.#"], producers=len(NAMES))
            crew.hire(job).tell("go")
        senders = [
            crew.hire(
                ProducerJob(
                    url=trio.url(name),
                    addresses=[f"{topic}.{number}"],
                    first_number=number,
                    size_bytes=size,
                )
            )
            for number, name in enumerate(NAMES)
        ]
        for sender in senders:
            sender.tell("go")
        await asyncio.sleep(1.0)
        # Somebody has to read what they tell, or they stop when their pipes are full.
        listening = asyncio.create_task(asyncio.to_thread(listen, crew, seconds + 1.0))
        times_s = await timed(trio, seconds, size)
        await listening
        published = sum(sender.sent for sender in senders)
    after = trio.terms()
    return {
        "appends": len(times_s),
        **spread(times_s),
        "elections": sum(after[group] - terms[group] for group in terms.keys() & after.keys()),
        "topic_messages": published,
    }


def listen(crew: Crew, seconds: float) -> None:
    """Take in what workers say, for some time."""
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        crew.listen(left_s)


async def timed(trio: Trio, seconds: float, size: int) -> list[float]:
    """Append now and then, one at a time; return how long each took to be answered."""
    times_s: list[float] = []
    body = bytes(size)
    url = await trio.url_for(STREAM)
    async with cogwork.connect(url) as client, client.stream(STREAM).publisher() as publisher:
        end_s = time.monotonic() + seconds
        while (start_s := time.monotonic()) < end_s:
            await publisher.post(body)
            times_s.append(time.monotonic() - start_s)
            await asyncio.sleep(LONELY_S)
    return times_s


# -- failures


async def failed_over(trio: Trio, kills: int, *, is_stopped: bool) -> dict[str, Any]:
    """Kill or stop the leader while messages flow; the longest gap of each subscriber left."""
    gaps: list[float] = []
    for _ in range(kills):
        leader = (await trio.rows([STREAM]))[0]["leader"]
        others = [name for name in NAMES if name != leader]
        gaps.append(await _gap(trio, leader, others, is_stopped=is_stopped))
    return {"median_s": round(statistics.median(gaps), 2), "longest_s": round(max(gaps), 2)}


async def _gap(trio: Trio, leader: str, others: list[str], *, is_stopped: bool) -> float:
    gap_s, last_s = 0.0, 0.0
    process = trio.processes[leader]

    async def listen() -> None:
        nonlocal gap_s, last_s
        async with (
            cogwork.connect(trio.url(others[1])) as client,
            client.stream(STREAM).read() as reader,
        ):
            while True:
                await reader.take()
                now_s = time.monotonic()
                gap_s = max(gap_s, now_s - last_s) if last_s else 0.0
                last_s = now_s

    listening = asyncio.ensure_future(listen())
    async with (
        cogwork.connect(trio.url(others[0])) as client,
        client.stream(STREAM).publisher() as publisher,
    ):
        start_s = time.monotonic()
        is_hurt = False
        while (passed_s := time.monotonic() - start_s) < 4.0:
            publisher.post(b"tick")
            await asyncio.sleep(0.005)
            if passed_s > 1.0 and not is_hurt:
                is_hurt = True
                process.send_signal(signal.SIGSTOP if is_stopped else signal.SIGKILL)
    listening.cancel()
    if is_stopped:
        process.send_signal(signal.SIGCONT)
    else:
        process.wait()
        trio.start(leader)
    trio.wait()
    await asyncio.sleep(LOOKED_S)
    return gap_s


def synced_ms(folder: str) -> float:
    """Return the median time of one fdatasync after a small write."""
    times_s = []
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        for number in range(200):
            os.pwrite(file.fileno(), bytes(1000), number * 1000)
            start_s = time.perf_counter()
            os.fdatasync(file.fileno())
            times_s.append(time.perf_counter() - start_s)
    return round(statistics.median(times_s) * 1e3, 2)


def round_trip_ms() -> float:
    """Return the median time of a small message to another process and back, over loopback."""
    times_s = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        echoing = subprocess.Popen([sys.executable, "-c", ECHO, str(server.getsockname()[1])])
        peer, _ = server.accept()
    with peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(2_000):
            start_s = time.perf_counter()
            peer.sendall(bytes(100))
            peer.recv(100)
            times_s.append(time.perf_counter() - start_s)
    echoing.wait()
    return round(statistics.median(times_s) * 1e3, 3)


async def measure(arguments: argparse.Namespace) -> None:
    """Run the cases, and print what each has found."""
    seconds, size, streams = arguments.seconds, arguments.size, arguments.streams
    facts = {
        "size_bytes": size,
        "fdatasync_ms": synced_ms(tempfile.gettempdir()),
        "round_trip_ms": round_trip_ms(),
        "load": os.getloadavg()[0],
    }
    _print(facts)
    with served(is_away=arguments.away, is_unix=arguments.unix, is_awake=arguments.awake) as trio:
        kills = arguments.kills
        cases: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
            "batches": lambda: appended(trio, seconds, size, batch=BATCH),
            "replay": lambda: replayed(trio, seconds, size),
            "single": lambda: appended(trio, seconds, size, batch=1),
            "delay": lambda: delayed(trio, seconds, size, burst=arguments.burst),
            "killed": lambda: failed_over(trio, kills, is_stopped=False),
            "stopped": lambda: failed_over(trio, kills, is_stopped=True),
            "beside": lambda: beside(trio, seconds, size),
            "active": lambda: active(trio, streams, seconds, size),
            "idle": lambda: idle(trio, streams, seconds),
        }
        await trio.declare([STREAM])
        for name in arguments.case or CASES:
            found = []
            for _ in range(arguments.runs):
                found.append(await cases[name]())
                _print({"case": name, **found[-1]})
            if arguments.runs > 1:
                _print({"case": name, "runs": arguments.runs, "medians": medians(found)})


def medians(found: list[dict[str, Any]]) -> dict[str, float]:
    """Return the median of each figure that all runs of a case have found."""
    return {
        name: statistics.median(each[name] for each in found)
        for name, value in found[0].items()
        if isinstance(value, int | float)
    }


def _print(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=CASES, help="all of them where none is named"
    )
    parser.add_argument("--runs", type=int, default=1, help="more than one: medians, too")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--burst", type=int, default=BURST, help="so many at a time, for delay")
    parser.add_argument("--away", action="store_true")
    parser.add_argument("--unix", action="store_true")
    parser.add_argument("--awake", action="store_true")
    with asyncio.Runner(loop_factory=cogwork.EventLoop) as runner:
        runner.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()

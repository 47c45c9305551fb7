"""Measures a stream on three replicas, each in a container with a disk, with real clients.

    python bench/replicated.py [--seconds 5] [--size 100] [--kills 5] [--idle 1000] [--away]

Three containers, linked with each other, on this machine; one client appends at the leader's
container (with --away at another one), and each container has one subscriber, in a process of its
own. Prints one line of JSON: messages a second appended and delivered, CPU seconds of everybody but
the appending client a million messages, the time from an append to its delivery at a given rate,
messages a second read again by one subscriber, the longest gap that a subscriber saw when the
leader was killed or stopped, and what idle streams cost a container. The disk, which everybody
waits for, is measured beside it: the time of one small fdatasync. TMPDIR says where the data are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cogwork

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("a", "b", "c")
BATCH = 1_000
UNDER_WAY = 16
READY_TIMEOUT_S = 20.0
LATENCY_RATE = 20_000
TICKS = os.sysconf("SC_CLK_TCK")


class Trio:
    """Three containers in processes of their own."""

    def __init__(self, folder: Path, *, is_away: bool, tables: str = "") -> None:
        self.folder = folder
        self.tables = tables
        self.is_away = is_away
        self.ports = dict(zip(NAMES, _free_ports(len(NAMES)), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        links = "".join(
            f'[[link]]\nurl = "127.0.0.1:{port}"\n'
            for other, port in self.ports.items()
            if other != name
        )
        file = self.folder / f"{name}.toml"
        file.write_text(
            f'id = "{name}"\ndata_dir = "{self.folder / name}"\n'
            f"[[listen]]\nport = {self.ports[name]}\n{links}"
            f"[cluster]\nvoters = {json.dumps(NAMES)}\n{self.tables}"
        )
        with (self.folder / f"{name}.log").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "cogwork.cli.main", "serve", "--config", str(file)],
                stdout=output,
                stderr=output,
            )

    def url(self, name: str) -> str:
        return f"amqp://127.0.0.1:{self.ports[name]}"

    async def url_for(self, stream: str) -> str:
        """Returns where to append."""
        leader = (await _row(self, stream))["leader"]
        away = next(name for name in NAMES if name != leader)
        return self.url(away if self.is_away else leader)

    def wait(self) -> None:
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        for port in self.ports.values():
            while time.monotonic() < deadline_s:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)

    def cpu_s(self) -> float:
        """Returns the CPU seconds of all containers."""
        return sum(_cpu_s(process.pid) for process in self.processes.values())


def _cpu_s(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


@contextmanager
def served(*, is_away: bool = False, tables: str = "") -> Iterator[Trio]:
    """Runs the containers."""
    with tempfile.TemporaryDirectory() as folder:
        trio = Trio(Path(folder), is_away=is_away, tables=tables)
        try:
            for name in NAMES:
                trio.start(name)
            trio.wait()
            time.sleep(2.0)
            yield trio
        finally:
            for process in trio.processes.values():
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


# -- subscribers, in processes of their own


async def subscribe(url: str, name: str) -> None:
    """Counts what comes until it is told to stop; a body of 8 octets or more begins with a time."""
    count, delays, gap_s, last_s = 0, [], 0.0, 0.0
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), stop.set)
    async with cogwork.connect(url) as mesh, mesh.stream(name).read("next") as reader:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        ending = asyncio.ensure_future(stop.wait())
        while not stop.is_set():
            taking = asyncio.ensure_future(reader.take())
            await asyncio.wait((taking, ending), return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                taking.cancel()
                break
            records = taking.result()
            now_s = time.monotonic()
            gap_s = max(gap_s, now_s - last_s) if last_s else 0.0
            last_s = now_s
            count += len(records)
            body: Any = records[0].body
            sent_s = int.from_bytes(body[:8], "big") / 1e9
            if sent_s:
                delays.append(now_s - sent_s)
    facts = {"count": count, "gap_s": gap_s, "delays": delays}
    sys.stdout.write(json.dumps(facts) + "\n")


class Subscribers:
    """One for each container."""

    def __init__(self, trio: Trio, stream: str) -> None:
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--subscribe", trio.url(name), stream],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for name in NAMES
        ]
        for process in self.processes:
            assert process.stdout is not None
            process.stdout.readline()

    def cpu_s(self) -> float:
        return sum(_cpu_s(process.pid) for process in self.processes)

    def end(self) -> list[dict[str, Any]]:
        found = []
        for process in self.processes:
            output, _ = process.communicate(b"stop\n")
            found.append(json.loads(output))
        return found


# -- cases


async def appended(
    trio: Trio, stream: str, seconds: float, size: int, *, batch: int
) -> dict[str, Any]:
    """Appends for some time, as fast as is taken; waits until everybody has everything."""
    subscribers = Subscribers(trio, stream)
    body = bytes(size)
    count = 0
    url = await trio.url_for(stream)
    async with cogwork.connect(url) as mesh, mesh.stream(stream).publisher() as publisher:
        cpu_s = trio.cpu_s() + subscribers.cpu_s()
        start_s = time.perf_counter()
        end_s = start_s + seconds
        if batch == 1:
            while time.perf_counter() < end_s:
                for _ in range(200):
                    publisher.post(body)
                count += 200
                await publisher.ready()
        else:
            bodies, under_way = [body] * batch, []
            while time.perf_counter() < end_s:
                under_way.append(publisher.post_batch(bodies))
                count += batch
                if len(under_way) > UNDER_WAY:
                    await under_way.pop(0)
            for each in under_way:
                await each
        await publisher.flush()
        passed_s = time.perf_counter() - start_s
        await asyncio.sleep(1.0)
        cpu_s = trio.cpu_s() + subscribers.cpu_s() - cpu_s
    found = await asyncio.to_thread(subscribers.end)
    return {
        "messages": count,
        "messages_per_s": round(count / passed_s),
        "cpu_s_a_million": round(cpu_s / count * 1e6, 2),
        "delivered": [each["count"] for each in found],
    }


async def replayed(trio: Trio, stream: str) -> dict[str, Any]:
    """Reads everything once more from the beginning, in batches, at the leader's container."""
    row = await _row(trio, stream)
    count, missing = 0, row["next"] - row["first"]
    async with cogwork.connect(trio.url(row["leader"])) as mesh:
        start_s = time.perf_counter()
        async for records in mesh.stream(stream).read_batches("first"):
            count += len(records)
            if count >= missing:
                break
        passed_s = time.perf_counter() - start_s
    return {"messages": count, "messages_per_s": round(count / passed_s)}


async def idle(trio: Trio, count: int, seconds: float) -> dict[str, Any]:
    """Declares streams that nobody uses; what a container takes with them, and does."""
    before_bytes = [_memory_bytes(each.pid) for each in trio.processes.values()]
    async with cogwork.connect(trio.url("a")) as mesh:
        for number in range(count):
            request = {"type": "stream", "name": f"stream/idle{number}", "engine": "raft"}
            await mesh.manage("CREATE", request)
    await asyncio.sleep(15.0)
    cpu_s = trio.cpu_s()
    await asyncio.sleep(seconds)
    cpu_s = trio.cpu_s() - cpu_s
    memory_bytes = [_memory_bytes(each.pid) for each in trio.processes.values()]
    return {
        "streams": count,
        "mb": [round(each / 1e6) for each in memory_bytes],
        "mb_before": [round(each / 1e6) for each in before_bytes],
        "cpu_share": round(cpu_s / seconds / len(NAMES), 3),
    }


def _memory_bytes(process_id: int) -> int:
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def _row(trio: Trio, stream: str) -> dict[str, Any]:
    async with cogwork.connect(trio.url("a")) as mesh:
        row = await mesh.manage("READ", {"type": "stream", "name": f"stream/{stream}"})
        found: dict[str, Any] = row.body  # type: ignore[assignment]  # a map of strings
        return found


def synced_ms(folder: str) -> float:
    """Returns the median time of one fdatasync after a small write."""
    times_s = []
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        for number in range(200):
            os.pwrite(file.fileno(), bytes(1000), number * 1000)
            start_s = time.perf_counter()
            os.fdatasync(file.fileno())
            times_s.append(time.perf_counter() - start_s)
    return round(statistics.median(times_s) * 1e3, 2)


async def delayed(trio: Trio, stream: str, seconds: float, size: int) -> dict[str, Any]:
    """Appends at a rate, twenty times a second or more, and sees when it is delivered."""
    subscribers = Subscribers(trio, stream)
    burst = 20
    url = await trio.url_for(stream)
    async with cogwork.connect(url) as mesh, mesh.stream(stream).publisher() as publisher:
        start_s = time.monotonic()
        sent = 0
        while time.monotonic() - start_s < seconds:
            stamp = time.monotonic_ns().to_bytes(8, "big")
            body = stamp + bytes(max(0, size - len(stamp)))
            for _ in range(burst):
                publisher.post(body)
            sent += burst
            await asyncio.sleep(max(0.0, start_s + sent / LATENCY_RATE - time.monotonic()))
        await publisher.flush()
        await asyncio.sleep(0.5)
    found = await asyncio.to_thread(subscribers.end)
    delays = sorted(delay for each in found for delay in each["delays"])
    return {
        "rate": round(sent / seconds),
        "p50_ms": round(delays[len(delays) // 2] * 1e3, 2),
        "p99_ms": round(delays[len(delays) * 99 // 100] * 1e3, 2),
    }


async def failed_over(trio: Trio, stream: str, kills: int, *, is_stopped: bool) -> dict[str, Any]:
    """Kills or stops the leader while messages flow; the longest gap of each subscriber left."""
    gaps: list[float] = []
    for _ in range(kills):
        await _row(trio, stream)
        await asyncio.sleep(1.5)  # what is told is a second old at most once somebody has looked
        leader = (await _row(trio, stream))["leader"]
        others = [name for name in NAMES if name != leader]
        gaps.append(await _gap(trio, stream, leader, others, is_stopped=is_stopped))
    return {"median_s": round(statistics.median(gaps), 2), "longest_s": round(max(gaps), 2)}


async def _gap(
    trio: Trio, stream: str, leader: str, others: list[str], *, is_stopped: bool
) -> float:
    gap_s, last_s = 0.0, 0.0
    process = trio.processes[leader]

    async def listen() -> None:
        nonlocal gap_s, last_s
        async with (
            cogwork.connect(trio.url(others[1])) as mesh,
            mesh.stream(stream).read() as reader,
        ):
            while True:
                await reader.take()
                now_s = time.monotonic()
                gap_s = max(gap_s, now_s - last_s) if last_s else 0.0
                last_s = now_s

    listening = asyncio.ensure_future(listen())
    async with (
        cogwork.connect(trio.url(others[0])) as mesh,
        mesh.stream(stream).publisher() as publisher,
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
    await asyncio.sleep(1.5)
    return gap_s


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    results: dict[str, object] = {
        "size_bytes": arguments.size,
        "fdatasync_ms": synced_ms(tempfile.gettempdir()),
        "load": os.getloadavg()[0],
    }
    seconds, size = arguments.seconds, arguments.size
    with served(is_away=arguments.away) as trio:
        words = ("stream", "create", trio.url("a"), "bench", "--engine", "raft")
        command = [sys.executable, "-m", "cogwork.cli.main", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        await asyncio.sleep(1.0)
        results["appended_in_batches"] = await appended(trio, "bench", seconds, size, batch=BATCH)
        results["replayed"] = await replayed(trio, "bench")
        results["appended_one_by_one"] = await appended(trio, "bench", seconds, size, batch=1)
        results["delayed"] = await delayed(trio, "bench", seconds, size)
        for name, is_stopped in (("killed", False), ("stopped", True)):
            if arguments.kills:
                results[name] = await failed_over(
                    trio, "bench", arguments.kills, is_stopped=is_stopped
                )
        if arguments.idle:
            results["idle"] = await idle(trio, arguments.idle, seconds)
    return results


def main() -> None:
    """Reads the options and prints the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--idle", type=int, default=1_000)
    parser.add_argument("--away", action="store_true")
    parser.add_argument("--subscribe", nargs=2)
    arguments = parser.parse_args()
    if arguments.subscribe:
        asyncio.run(subscribe(*arguments.subscribe))
        return
    sys.stdout.write(json.dumps(asyncio.run(measure(arguments))) + "\n")


if __name__ == "__main__":
    main()

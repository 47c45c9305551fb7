"""Measures a stream with one Python client: appends one by one and in batches, and replays.

    python bench/streams.py [--engine orb] [--seconds 5] [--size 100] [URL]

Without a URL it serves a container of its own. Prints one line of JSON: messages a second for each
case, and the CPU seconds of client and container a million messages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cogwork
from cogwork.amqp.performatives import Role, SenderSettleMode
from cogwork.amqp.terminus import Source, Target
from cogwork.bench.servers.process import free_ports
from cogwork.client.links.link_end import LinkEnd
from cogwork.client.streams.start import start_filters, start_of
from cogwork.dataplane.addresses.drain import Drain
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.transport.incoming import IncomingLink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.client import Stream
    from cogwork.dataplane.link import Link

BATCH = 1000
UNDER_WAY = 8
WINDOW = 50_000
READY_TIMEOUT_S = 20.0


@contextmanager
def served(engine: str) -> Iterator[str]:
    """Run a container in a process of its own."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cogwork.toml"
        file.write_text(
            f"[[listen]]\nport = {port}\n"
            f'[[stream]]\naddress = "stream/bench"\nengine = "{engine}"\n'
            "retention_bytes = 4000000000\n"
        )
        command = [sys.executable, "-m", "cogwork.cli.main", "serve", "--config", str(file)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            deadline_s = time.monotonic() + READY_TIMEOUT_S
            while time.monotonic() < deadline_s:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield f"amqp://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


async def cpu_of(client: cogwork.Client) -> tuple[float, float]:
    """Return the CPU seconds of this process and of the container's."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    row: Any = (await client.manage("READ", {"type": "container"})).body
    return used.ru_utime + used.ru_stime, float(row["cpu_s"])


class Case:
    """One case: counts messages from `async with` on."""

    def __init__(self, client: cogwork.Client, name: str, results: dict[str, object]) -> None:
        self._client = client
        self._name = name
        self._results = results
        self.count = 0

    async def __aenter__(self) -> Case:
        self._cpu = await cpu_of(self._client)
        self._since_s = time.perf_counter()
        return self

    async def __aexit__(self, *_: object) -> None:
        passed_s = time.perf_counter() - self._since_s
        cpu = await cpu_of(self._client)
        millions = self.count / 1e6
        self._results[self._name] = {
            "messages": self.count,
            "messages_per_s": round(self.count / passed_s),
            "client_cpu_s_a_million": round((cpu[0] - self._cpu[0]) / millions, 3),
            "container_cpu_s_a_million": round((cpu[1] - self._cpu[1]) / millions, 3),
        }


async def one_by_one(stream: Stream, case: Case, body: bytes, seconds: float) -> None:
    async with stream.publisher() as publisher, case:
        end_s = time.perf_counter() + seconds
        while time.perf_counter() < end_s:
            for _ in range(200):
                publisher.post(body)
            case.count += 200
            await publisher.ready()
        await publisher.flush()


async def in_batches(stream: Stream, case: Case, body: bytes, seconds: float) -> None:
    bodies = [body] * BATCH
    async with stream.publisher() as publisher, case:
        end_s = time.perf_counter() + seconds
        under_way: list[Any] = []
        while time.perf_counter() < end_s:
            under_way.append(publisher.post_batch(bodies))
            case.count += BATCH
            if len(under_way) > UNDER_WAY:
                await under_way.pop(0)
        for each in under_way:
            await each


async def replay(stream: Stream, case: Case, total: int) -> None:
    async with stream.read("first") as reader, case:
        while case.count < total:
            case.count += len(await reader.take())


class Counter(LinkEnd):
    """Receives a stream into nothing: the compiled core alone, without an object for a message."""

    role = Role.RECEIVER

    def __init__(self, client: cogwork.Client, address: str) -> None:
        super().__init__(client, address)
        self.drain = Drain(client.core)
        self._entry = AddressEntry(client.core, address, CLOSEST_CODE)
        self._entry.add_outlet(self.drain)

    def attach(self, link: Link) -> None:
        source = Source(address=self.address, filter=start_filters(start_of("first")))
        end = IncomingLink(link.session.end, link.handle, self._entry, None, WINDOW)
        link.attach(source=source, target=Target(), snd_settle_mode=SenderSettleMode.SETTLED)
        link.carry(end)

    def attached(self, link: Link) -> None:
        assert isinstance(link.end, IncomingLink)
        link.end.open_credit()
        self.client.flush()

    def detached(self) -> None:
        """Do nothing: a cut ends the measurement."""

    def close_with(self, error: Exception) -> None:
        """Do nothing either."""


async def replay_compiled(client: cogwork.Client, case: Case, total: int) -> None:
    counter = Counter(client, "stream/bench")
    async with case:
        await counter.open()
        while counter.drain.messages < total:
            await asyncio.sleep(0.002)
        case.count = total
    await counter.shut()


async def replay_one_by_one(stream: Stream, case: Case, total: int) -> None:
    async with stream.read("first") as reader, case:
        async for record in reader:
            if record.offset + 1 >= total:
                break
        case.count = total


async def measure(url: str, arguments: argparse.Namespace) -> dict[str, object]:
    body = b"x" * arguments.size
    results: dict[str, object] = {"engine": arguments.engine, "size_bytes": arguments.size}
    async with cogwork.connect(url) as client:
        stream = client.stream("bench")
        seconds = arguments.seconds
        await one_by_one(stream, Case(client, "append_one_by_one", results), body, seconds)
        await in_batches(stream, Case(client, "append_in_batches", results), body, seconds)
        row: Any = (await client.manage("READ", {"type": "stream", "name": "stream/bench"})).body
        await replay(stream, Case(client, "replay_in_batches", results), row["records"])
        await replay_compiled(client, Case(client, "replay_compiled", results), row["records"])
        await replay_one_by_one(
            stream, Case(client, "replay_one_by_one", results), min(row["records"], 1_000_000)
        )
    return results


def main() -> None:
    """Read the options and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--engine", default="orb")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--size", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.url is not None:
        results = asyncio.run(measure(arguments.url, arguments))
    else:
        with served(arguments.engine) as url:
            results = asyncio.run(measure(url, arguments))
    print(json.dumps(results))


if __name__ == "__main__":
    main()

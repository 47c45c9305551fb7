"""Three containers with a disk each, in processes of their own, and subscribers likewise.

    python bench/voters.py URL STREAM

is such a subscriber: it counts what comes, until a line comes on its standard input.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cogwork
from cogwork.bench.servers.process import free_ports
from cogwork.bench.usage import ProcessUsage
from cogwork.log.errors import LogError
from cogwork.log.file_header import HEADER_BYTES, FileHeader
from cogwork.log.mark import LOG_GROUP
from cogwork.log.record import scan_records

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("LOOKED_S", "NAMES", "Subscribers", "Trio", "served")

NAMES = ("a", "b", "c")
READY_TIMEOUT_S = 20.0
LOOKED_S = 1.5
"""What is told of a stream is a second old at most, once somebody has looked."""

STAMPED_EACH = 5
"""Of so many records one is looked at for when it was sent."""

READ_MAX = 10_000
"""Records that a subscriber takes at a time, at most."""

MADE_TOGETHER = 50
"""So many streams are declared at a time."""

HARD_STATE = 1
"""The kind of record in which a replica keeps its term."""


class Trio:
    """Three containers."""

    def __init__(
        self,
        folder: Path,
        *,
        is_away: bool,
        is_unix: bool = False,
        is_awake: bool = False,
        tables: str = "",
        python: str = sys.executable,
    ) -> None:
        self.folder = folder
        self.is_unix = is_unix
        self.is_awake = is_awake
        self.python = python
        self.tables = tables
        self.is_away = is_away
        self.ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        links = "".join(
            f'[[link]]\nurl = "{self.url(other)}"\n' for other in NAMES if other != name
        )
        file = self.folder / f"{name}.toml"
        file.write_text(
            f'id = "{name}"\ndata_dir = "{self.folder / name}"\n'
            f"keep_awake = {json.dumps(self.is_awake)}\n"
            f"[[listen]]\nport = {self.ports[name]}\n{self._socket(name)}{links}"
            f"[cluster]\nprimaries = {json.dumps(NAMES)}\n{self.tables}"
        )
        with (self.folder / f"{name}.log").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [self.python, "-m", "cogwork.cli.main", "serve", "--config", str(file)],
                stdout=output,
                stderr=output,
            )

    def _socket(self, name: str) -> str:
        return f'[[listen]]\npath = "{name}.sock"\n' if self.is_unix else ""

    def wait(self) -> None:
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        for port in self.ports.values():
            while time.monotonic() < deadline_s:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)

    # -- where to go

    def url(self, name: str) -> str:
        if self.is_unix:
            return f"unix://{self.folder / name}.sock"
        return f"amqp://127.0.0.1:{self.ports[name]}"

    async def url_for(self, stream: str) -> str:
        """Return where to append."""
        leader = (await self.rows([stream]))[0]["leader"]
        away = next(name for name in NAMES if name != leader)
        return self.url(away if self.is_away else leader)

    async def rows(self, streams: list[str]) -> list[dict[str, Any]]:
        """Return what is known of streams now."""
        async with cogwork.connect(self.url("a")) as client:
            await _read(client, streams)
            await asyncio.sleep(LOOKED_S)
            return await _read(client, streams)

    async def declare(self, streams: list[str]) -> None:
        """Make streams, and wait until they are there."""
        async with cogwork.connect(self.url("a")) as client:
            for at in range(0, len(streams), MADE_TOGETHER):
                names = streams[at : at + MADE_TOGETHER]
                await asyncio.gather(*(_make(client, name) for name in names))
        await asyncio.sleep(LOOKED_S)

    # -- what they use

    def cpu_s(self) -> float:
        """Return the CPU seconds of all containers."""
        return ProcessUsage(*(process.pid for process in self.processes.values())).cpu_s()

    def memory_bytes(self) -> list[int]:
        """Return the memory of each container."""
        return [ProcessUsage(each.pid).rss_bytes() for each in self.processes.values()]

    def terms(self) -> dict[int, int]:
        """Return the term of each group: each election that anybody stood in makes it more."""
        terms: dict[int, int] = {}
        for file in self.folder.glob("*/wal/*.wal"):
            data = file.read_bytes()
            with suppress(LogError):
                number = FileHeader.decode(data, str(file)).number
                for record in scan_records(data, HEADER_BYTES, number):
                    if record.kind == HARD_STATE and record.group != LOG_GROUP:
                        terms[record.group] = max(terms.get(record.group, 0), record.term)
        return terms


async def _make(client: cogwork.Client, stream: str) -> None:
    made = {"type": "stream", "name": f"stream/{stream}"}
    await client.manage("CREATE", made, {"engine": "raft"})


async def _read(client: cogwork.Client, streams: list[str]) -> list[dict[str, Any]]:
    rows: list[Any] = [
        (await client.manage("READ", {"type": "stream", "name": f"stream/{name}"})).body
        for name in streams
    ]
    return rows


@contextmanager
def served(
    *,
    is_away: bool = False,
    is_unix: bool = False,
    is_awake: bool = False,
    tables: str = "",
    python: str = sys.executable,
) -> Iterator[Trio]:
    """Run the containers, and their subscribers, by an interpreter that has the program."""
    with tempfile.TemporaryDirectory() as folder:
        trio = Trio(
            Path(folder),
            is_away=is_away,
            is_unix=is_unix,
            is_awake=is_awake,
            tables=tables,
            python=python,
        )
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


class Subscribers:
    """One for each container."""

    def __init__(self, trio: Trio, stream: str) -> None:
        self.processes = [
            subprocess.Popen(
                [trio.python, __file__, trio.url(name), stream],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for name in NAMES
        ]
        for process in self.processes:
            assert process.stdout is not None
            process.stdout.readline()

    def cpu_s(self) -> float:
        return ProcessUsage(*(process.pid for process in self.processes)).cpu_s()

    def end(self) -> list[dict[str, Any]]:
        found = []
        for process in self.processes:
            output, _ = process.communicate(b"stop\n")
            found.append(json.loads(output))
        return found


class Subscriber:
    """Counts what comes, sees that it is in order, and how long it took."""

    def __init__(self) -> None:
        self.count = 0
        self.out_of_order = 0
        self.delays: list[float] = []
        self._next: int | None = None

    async def run(self, url: str, name: str) -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stopped.set)
        async with cogwork.connect(url) as client, client.stream(name).read("next") as reader:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            taking = asyncio.ensure_future(self._take(reader))
            await stopped.wait()
            taking.cancel()
        facts = {"count": self.count, "out_of_order": self.out_of_order, "delays": self.delays}
        sys.stdout.write(json.dumps(facts) + "\n")

    async def _take(self, reader: cogwork.client.StreamReader) -> None:
        async for records in reader.batches(READ_MAX):
            now_s = time.monotonic()
            first, count = records[0].offset, len(records)
            if self._next not in {None, first} or records[-1].offset != first + count - 1:
                self.out_of_order += 1
            self._next = first + count
            self.count += count
            for record in records[::STAMPED_EACH]:
                body: Any = record.body
                if sent_s := int.from_bytes(body[:8], "big") / 1e9:
                    self.delays.append(now_s - sent_s)
                else:
                    break  # nothing is timed


def main() -> None:
    """Run a subscriber."""
    with asyncio.Runner(loop_factory=cogwork.EventLoop) as runner:
        runner.run(Subscriber().run(*sys.argv[1:3]))


if __name__ == "__main__":
    main()

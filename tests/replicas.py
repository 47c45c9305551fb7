"""Containers with replicas, in one event loop: real disks, and a carrier that can be cut."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cogwork.dataplane.disk import Disk
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.wal import Wal
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import CaughtUp, Origin
from cogwork.plugin.engine.placement import Placement
from cogwork.raft.settings import Settings
from cogwork.replication.service import RaftService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from cogwork.replication.engine import RaftEngine

SETTINGS = Settings(quiesce_s=2.0)
FIRST = Placement(["a", "b", "c"], founders=["a", "b", "c"])
_incarnations = itertools.count(1)


class Node:
    """One container's part."""

    def __init__(self, trio: Trio, name: str) -> None:
        self.name = name
        self.path = trio.path / name
        self.disk = Disk()
        self.queue = DiskQueue(self.disk)
        self.wal = Wal(Directory(self.path / "wal"), self.queue, name, file_bytes=trio.file_bytes)
        self.service = RaftService(
            name,
            next(_incarnations),
            _Way(trio, name),
            wal=self.wal,
            queue=self.queue,
            directory_of=lambda group: Directory(self.path / "streams" / str(group)),
            report=trio.reports.append,
            settings=SETTINGS,
        )
        self.service.cluster = trio
        for record in self.wal.recover():
            self.service.replay(record)
        self.wal.on_durable = self.service.durable
        self.wal.on_pressure = self.service.compaction_scheduler.ask
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.queue.fileno(), self.queue.dispatch)

    async def stop(self) -> None:
        await self.service.close()
        self._loop.remove_reader(self.queue.fileno())
        self.wal.close()
        self.queue.close()


class _Way:
    """A container's carrier."""

    def __init__(self, trio: Trio, own: str) -> None:
        self._trio = trio
        self._own = own

    def send(self, to: str, *parts: bytes) -> bool:
        if to not in self._trio.nodes or not self._trio.passes(self._own, to):
            return False
        asyncio.get_running_loop().call_soon(self._arrive, to, b"".join(parts))
        return True

    def flush(self) -> None:
        pass

    def _arrive(self, to: str, data: bytes) -> None:
        node = self._trio.nodes.get(to)
        if node is not None and self._trio.passes(self._own, to):
            node.service.receive(self._own, data)


class Trio:
    """Containers by name, and what the cluster does: it says who is to hold a stream."""

    voters = ("a", "b", "c")

    def __init__(self, path: Path, file_bytes: int = 32 << 20) -> None:
        self.path = path
        self.file_bytes = file_bytes
        self.nodes: dict[str, Node] = {}
        self.reports: list[str] = []
        self.placements: dict[tuple[str, int], Placement] = {}
        self.uninformed: set[str] = set()
        self.passes: Callable[[str, str], bool] = lambda _from, _to: True

    def start(self, name: str) -> Node:
        self.nodes[name] = Node(self, name)
        return self.nodes[name]

    async def stop(self, name: str) -> None:
        await self.nodes.pop(name).stop()

    async def open(self, name: str, stream: str = "orders", group: int = 17) -> RaftEngine:
        placement = self.placements.setdefault((stream, group), FIRST)
        options = {"group": group, "replicas": placement}
        return await self.nodes[name].service.open(stream, options)

    async def stopped_with_state(self, name: str) -> Path:
        """Append to a stream until a container has sealed some of it; stop that, returns where.

        With fewer `member.SEAL_ENTRIES` than 40.
        """
        engines = [await self.open(each) for each in self.nodes]
        for number in range(40):
            await engines[0].append(Batch.of([b"%d" % number]))
        folder = self.path / name / "streams" / "17"
        while not (folder / "state").exists():
            await asyncio.sleep(0.05)
        await self.stop(name)
        return folder

    def move(
        self, voters: str, learners: str = "", stream: str = "orders", group: int = 17
    ) -> None:
        """Have others hold a stream."""
        placement = self.placements[stream, group]
        self._place((stream, group), placement.moved([*voters], [*learners]))

    def _place(self, key: tuple[str, int], placement: Placement) -> None:
        self.placements[key] = placement
        for name in self.nodes.keys() - self.uninformed:
            self.nodes[name].service.place(*key, placement)

    def moved(self, group: int, move: int, floor: tuple[int, int]) -> None:
        """Take note that a move is done."""
        key = self._key(group)
        placement = self.placements[key]
        if placement.move == move and not placement.is_settled:
            self._place(key, placement.done(floor))

    def _key(self, group: int) -> tuple[str, int]:
        return next(key for key in self.placements if key[1] == group)

    async def change_members(
        self, group: int, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Have others hold a stream, and wait until they do."""
        key = self._key(group)
        self._place(key, self.placements[key].moved(voters, learners))
        await self.settled(*key)

    async def settled(self, stream: str = "orders", group: int = 17) -> None:
        """Wait until a move is done."""
        while not self.placements[stream, group].is_settled:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def trio(path: Path, names: str = "abc", file_bytes: int = 32 << 20) -> AsyncIterator[Trio]:
    """Run containers."""
    made = Trio(path, file_bytes)
    for name in names:
        made.start(name)
    try:
        yield made
    finally:
        for name in list(made.nodes):
            await made.stop(name)


async def take(engine: RaftEngine, count: int) -> list[bytes]:
    """Read from the first record on, until there are so many."""
    records: list[bytes] = []
    subscription = engine.subscribe(Origin.FIRST)
    async for each in subscription:
        if not isinstance(each, CaughtUp):
            records += each.batch.records()  # type: ignore[union-attr]  # there are no snapshots
        if len(records) >= count:
            break
    await subscription.aclose()
    return records

"""The engine `raft` passes the kit, on three containers with disks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from replicas import Trio

from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine import sequencer
from cogwork.plugin.engine.contract import Snapshot
from cogwork.plugin.engine.errors import InvalidSnapshot
from cogwork.replication.engine import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import EngineHost
    from cogwork.replication.engine import RaftEngine

NAMES = "abcd"
"""The last one holds no replicas."""


class Cluster:
    """Containers that know of the same streams, as if a cluster had told them."""

    def __init__(self, path: Path) -> None:
        self.trio = Trio(path)
        self.users = 0
        self._groups: dict[str, int] = {}
        self._number = 16

    async def open(self, name: str, stream: str) -> RaftEngine:
        if stream not in self._groups:
            self._number += 1
            self._groups[stream] = self._number
        if not self.trio.nodes:
            for each in NAMES:
                self.trio.start(each)
        for each, node in self.trio.nodes.items():
            if stream not in node.service.streams:
                await self.trio.open(each, stream, self._groups[stream])
        return await self.trio.open(name, stream, self._groups[stream])

    async def delete(self, stream: str) -> None:
        if self._groups.pop(stream, None) is not None:
            for node in self.trio.nodes.values():
                await node.service.delete(stream)

    async def leave(self) -> None:
        self.users -= 1
        if not self.users:
            for name in list(self.trio.nodes):
                await self.trio.stop(name)


class Host:
    """One container, as a host of engines."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._opened: list[RaftEngine] = []
        cluster.users += 1

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> RaftEngine:
        del options
        engine = await self._cluster.open(self._name, stream)
        self._opened.append(engine)
        return engine

    async def delete(self, stream: str) -> None:
        await self._cluster.delete(stream)

    async def close(self) -> None:
        for engine in self._opened:
            await engine.close()
        await asyncio.sleep(0)
        await self._cluster.leave()


class TestRaft(EngineConformance):
    @pytest.fixture(autouse=True)
    def _cluster(self, tmp_path: Path) -> None:
        self.cluster = Cluster(tmp_path)
        self.made = 0

    def make_host(self) -> EngineHost:
        name = ("a", "d", "b", "c")[self.made % 4]
        self.made += 1
        return Host(self.cluster, name)


def test_a_snapshot_that_is_too_large_is_refused_wherever_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencer, "SNAPSHOT_BYTES_MAX", 3)

    async def story() -> None:
        cluster = Cluster(tmp_path)
        hosts = [Host(cluster, name) for name in NAMES]
        for host in hosts:
            engine = await host.open("s", {})
            with pytest.raises(InvalidSnapshot, match="has 4 octets, more than the 3"):
                await engine.save_snapshot(Snapshot(0, b"four"))
            assert await engine.load_snapshot() is None
        for host in hosts:
            await host.close()

    asyncio.run(story())

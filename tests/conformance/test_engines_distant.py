"""The engine `orb` passes the kit from another container, too, and mixed with users at its home."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.container.cluster.orbs import ClusteredOrb
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.replication.service import RaftService

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.log.directory import Directory
    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Engine, EngineHost

HOME, OTHER = "home", "other"


class Way:
    """A carrier between two containers of one event loop."""

    def __init__(self, own: str, services: dict[str, RaftService]) -> None:
        self._own = own
        self._services = services

    def send(self, to: str, *parts: bytes) -> bool:
        service = self._services[to]
        asyncio.get_running_loop().call_soon(service.receive, self._own, b"".join(parts))
        return True

    def flush(self) -> None:
        """Everything has left already."""


def nowhere(group: int) -> Directory:
    raise AssertionError(group)


class Pair:
    """A home and another container: who opens a stream once more does it at the other one."""

    def __init__(self) -> None:
        self._services: dict[str, RaftService] = {}
        self._orbs: dict[str, ClusteredOrb] = {}
        self._count = 0
        for name in (HOME, OTHER):
            service = self._services[name] = RaftService(
                name,
                1,
                Way(name, self._services),
                wal=None,
                queue=None,
                directory_of=nowhere,
                report=print,
            )
            self._orbs[name] = ClusteredOrb(name, service, lambda _name: 7, print)

    @property
    def capabilities(self) -> Capabilities:
        return self._orbs[HOME].capabilities

    async def open(self, stream: str, options: Mapping[str, object]) -> Engine:
        self._count += 1
        given = {**options, "home": HOME}
        at_home = await self._orbs[HOME].open(stream, given)
        return await self._orbs[OTHER].open(stream, given) if self._count % 2 else at_home

    async def delete(self, stream: str) -> None:
        for name in (OTHER, HOME):
            await self._orbs[name].delete(stream)

    async def close(self) -> None:
        for name in (OTHER, HOME):
            await self._orbs[name].close()
            await self._services[name].close()


class TestDistantOrb(EngineConformance):
    def make_host(self) -> EngineHost:
        return Pair()

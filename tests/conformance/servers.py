"""Servers below engines: one that runs for a module's tests, and a cluster whose leader dies."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, TypeVar

import pytest

from cogwork.bench.servers.process import Missing, Server
from cogwork.plugin.engine.contract import EngineContext

from .faults import survive_the_leader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cogwork.plugin.engine.contract import EngineFactory, EngineHost
    from cogwork.plugin.engine.durability import Durability

AnyServer = TypeVar("AnyServer", bound=Server)

CLUSTER_WITHIN_S = 90


def running(make: Callable[[], AnyServer]) -> Iterator[AnyServer]:
    """Have a server run, for a fixture; skips the tests where it cannot be had."""
    try:
        server = make()
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()


class OnServer:
    """Tests on the module's server."""

    factory: ClassVar[EngineFactory]
    server: ClassVar[Server]

    @pytest.fixture(autouse=True)
    def _use(self, server: Server) -> None:
        type(self).server = server
        if not server.is_running:
            server.start()

    def make_host(self, timeout_s: float = 10.0) -> EngineHost:
        return type(self).factory(EngineContext({**self.server.options, "timeout_s": timeout_s}))


def check_cluster(
    servers: Sequence[Server],
    factory: EngineFactory,
    durability: Durability,
    stream_options: Mapping[str, object],
) -> None:
    """Start a cluster; see what it declares, and that it survives its leader."""
    try:
        for each in servers:
            each.launch()
        for each in servers:
            each.wait()

        async def story() -> None:
            host = factory(EngineContext(servers[0].options))
            engine = await host.open("declared", stream_options)
            assert engine.capabilities.durability is durability
            assert engine.capabilities.is_uniform
            await survive_the_leader(host, stream_options, servers)

        asyncio.run(asyncio.wait_for(story(), CLUSTER_WITHIN_S))
    finally:
        for each in servers:
            each.kill()

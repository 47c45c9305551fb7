"""The engine `nats`, against a NATS server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("nats", reason="the extra [nats] is not installed")

import nats

from cogwork.cli.servers.nats import NatsServer
from cogwork.cli.servers.process import Missing
from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.durability import Durability
from cogwork.consensus.engine import EngineContext
from cogwork.consensus.nats import NatsHost

from .faults import ServerFaults, survive_the_leader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.cli.servers.process import Server
    from cogwork.consensus.engine import EngineHost


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()


class _OnNats:
    server: Server

    @pytest.fixture(autouse=True)
    def _use(self, server: NatsServer) -> None:
        type(self).server = server

    def make_host(self, timeout_s: float = 10.0) -> NatsHost:
        return NatsHost(EngineContext({**self.server.options, "timeout_s": timeout_s}))


class TestNats(_OnNats, EngineConformance):
    """The kit."""


class TestNatsFaults(_OnNats, ServerFaults):
    """A server that dies, stops, or lies."""

    bears_strangers = True

    async def intrude(self, host: EngineHost, stream: str, data: bytes) -> None:
        client = await nats.connect(str(self.server.options["url"]))
        await client.jetstream().publish(f"cogwork-{stream}", data)
        await client.close()


def test_a_cluster_survives_its_leader(server: NatsServer, tmp_path: Path) -> None:
    servers = NatsServer.cluster(tmp_path, 3)
    try:
        for each in servers:
            each.launch()
        for each in servers:
            each.wait()

        async def story() -> None:
            host = NatsHost(EngineContext(servers[0].options))
            engine = await host.open("declared", {"replicas": 3})
            assert engine.capabilities.durability is Durability.REPLICATED_MEMORY
            assert engine.capabilities.is_uniform
            await survive_the_leader(host, {"replicas": 3}, servers)

        asyncio.run(asyncio.wait_for(story(), 90))
    finally:
        for each in servers:
            each.kill()

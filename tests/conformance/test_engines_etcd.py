"""The engine `etcd`, against an etcd."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("aiohttp", reason="the extra [etcd] is not installed")

from cogwork.cli.servers.etcd import EtcdServer
from cogwork.cli.servers.process import Missing
from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.durability import Durability
from cogwork.consensus.engine import EngineContext
from cogwork.consensus.etcd import EtcdHost

from .faults import ServerFaults, survive_the_leader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.cli.servers.process import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path_factory.mktemp("etcd"))
    try:
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()


class _OnEtcd:
    server: Server

    @pytest.fixture(autouse=True)
    def _use(self, server: EtcdServer) -> None:
        type(self).server = server

    def make_host(self, timeout_s: float = 10.0) -> EtcdHost:
        return EtcdHost(EngineContext({**self.server.options, "timeout_s": timeout_s}))


class TestEtcd(_OnEtcd, EngineConformance):
    """The kit."""


class TestEtcdFaults(_OnEtcd, ServerFaults):
    """A server that dies, stops, or lies."""


def test_a_cluster_survives_its_leader(server: EtcdServer, tmp_path: Path) -> None:
    servers = EtcdServer.cluster(tmp_path, 3)
    try:
        for each in servers:
            each.launch()
        for each in servers:
            each.wait()

        async def story() -> None:
            host = EtcdHost(EngineContext(servers[0].options))
            engine = await host.open("declared", {})
            assert engine.capabilities.durability is Durability.QUORUM_DISK
            assert engine.capabilities.is_uniform
            await survive_the_leader(host, {}, servers)

        asyncio.run(asyncio.wait_for(story(), 90))
    finally:
        for each in servers:
            each.kill()

"""The engine `nats`, against a NATS server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("nats", reason="the extra [nats] is not installed")

import nats

from cogwork.cli.servers.nats import NatsServer
from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.durability import Durability
from cogwork.consensus.nats import NatsHost

from .faults import ServerFaults
from .servers import OnServer, check_cluster, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.consensus.engine import EngineHost


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    yield from running(lambda: NatsServer(tmp_path_factory.mktemp("nats")))


class TestNats(OnServer, EngineConformance):
    """The kit."""

    factory = NatsHost


class TestNatsFaults(OnServer, ServerFaults):
    """A server that dies, stops, or lies."""

    factory = NatsHost
    bears_strangers = True

    async def intrude(self, host: EngineHost, stream: str, data: bytes) -> None:
        client = await nats.connect(str(self.server.options["url"]))
        await client.jetstream().publish(f"cogwork-{stream}", data)
        await client.close()


@pytest.mark.usefixtures("server")
def test_a_cluster_survives_its_leader(tmp_path: Path) -> None:
    servers = NatsServer.cluster(tmp_path, 3)
    check_cluster(servers, NatsHost, Durability.REPLICATED_MEMORY, {"replicas": 3})

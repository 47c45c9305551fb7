"""The engine `nats`, against a NATS server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("nats", reason="the extra [nats] is not installed")

import nats

from cogwork.cli.servers.nats import NatsServer
from cogwork.consensus.batch import Batch
from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.durability import Durability
from cogwork.consensus.engine import EngineContext
from cogwork.consensus.errors import Unavailable
from cogwork.consensus.nats import NatsHost
from cogwork.consensus.shared.server import Gone

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


def test_a_stream_that_others_have_deleted_is_told_to_be_gone(server: NatsServer) -> None:
    async def story() -> None:
        host = NatsHost(EngineContext(server.options))
        engine = await host.open("deleted-by-others", {"retention_records": 1})
        for _ in range(3):
            await engine.append(Batch.of([b"x"]))
        client = await nats.connect(str(server.options["url"]))
        await client.jetstream().delete_stream("cogwork-deleted-by-others")
        await client.close()
        log = engine._log
        for call in (log.trim(2), log.reader(1), log.ends(), log.fetch(1)):
            with pytest.raises(Gone):
                await call
        with pytest.raises(Unavailable, match="it was deleted, or lost"):
            await engine.trim(2)
        await host.close()

    if not server.is_running:
        server.start()
    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.usefixtures("server")
def test_a_cluster_survives_its_leader(tmp_path: Path) -> None:
    servers = NatsServer.cluster(tmp_path, 3)
    check_cluster(servers, NatsHost, Durability.REPLICATED_MEMORY, {"replicas": 3})

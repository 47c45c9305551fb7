"""The engine `nats`, against a NATS server."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("nats", reason="the extra [nats] is not installed")

import nats

from cogwork.bench.servers.nats import NatsServer
from cogwork.engines.nats import NatsHost
from cogwork.engines.shared.server import Gone
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import EngineContext, Origin
from cogwork.plugin.engine.durability import Durability
from cogwork.plugin.engine.errors import Unavailable

from .faults import ServerFaults
from .servers import OnServer, check_cluster, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cogwork.plugin.engine.contract import EngineHost


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


class LimitedServer(NatsServer):
    """A server whose configuration says how many connections there may be."""

    def command(self) -> list[str]:
        return [super().command()[0], "--config", str(self.directory / "limit.conf")]

    def limit(self, count: int) -> None:
        store = f'jetstream {{ store_dir: "{self.directory / "data"}" }}'
        lines = (f"port: {self.port}", f"http_port: {self.more_ports[1]}", store)
        text = "\n".join((*lines, f"max_connections: {count}"))
        (self.directory / "limit.conf").write_text(text)
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)


async def send_away(host: NatsHost, server: LimitedServer) -> None:
    """Have the server choose one of two connections until it is the host's."""
    client = (await host._connection.session()).client
    while not client.is_closed:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        server.limit(1)
        is_other = asyncio.create_task(reader.read())
        while not client.is_closed and not is_other.done():
            await asyncio.sleep(0.01)
        server.limit(100)
        await asyncio.sleep(0.2)
        writer.close()
        await asyncio.wait([is_other])


@pytest.mark.usefixtures("server")
def test_a_stream_goes_on_after_its_client_was_sent_away_for_good(tmp_path: Path) -> None:
    """The library never connects again after an `-ERR`, such as of one connection too many."""
    server = LimitedServer(tmp_path)
    server.limit(100)
    server.start()

    async def story() -> None:
        host = NatsHost(EngineContext(server.options))
        engine = await host.open("sent-away", {})
        reader = engine.subscribe(Origin.FIRST)
        offsets: list[int] = []
        for number in range(4):
            if number:
                await send_away(host, server)
            await engine.append(Batch.of([b"%d" % number]))
            while len(offsets) <= number:
                if isinstance(item := await anext(reader), Chunk):
                    offsets.append(item.offset)
        assert offsets == [0, 1, 2, 3]
        await reader.aclose()
        await host.close()

    try:
        asyncio.run(asyncio.wait_for(story(), 100))
    finally:
        server.kill()


@pytest.mark.usefixtures("server")
def test_a_cluster_survives_its_leader(tmp_path: Path) -> None:
    servers = NatsServer.cluster(tmp_path, 3)
    check_cluster(servers, NatsHost, Durability.REPLICATED_MEMORY, {"replicas": 3})

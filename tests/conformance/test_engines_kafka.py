"""The engine `kafka`, against a broker in KRaft mode, or the one that KAFKA_BOOTSTRAP names.

The mock cluster in the client library is no stand-in: it makes no topics and deletes no records.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, ClassVar

import pytest

pytest.importorskip("confluent_kafka", reason="the extra [kafka] is not installed")

from confluent_kafka import Producer

from cogwork.bench.servers.kafka import KafkaServer
from cogwork.engines.kafka.host import KafkaHost
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.errors import Unavailable

from .faults import KILLS, ServerFaults, name, opened
from .kafka_jars import jars
from .servers import OnServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.plugin.engine.contract import EngineHost


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    yield from running(lambda: KafkaServer(tmp_path_factory.mktemp("kafka"), jars()))


class TestKafka(EngineConformance):
    """The kit."""

    host_options: ClassVar[dict[str, object]]

    @pytest.fixture(autouse=True)
    def _use(self, request: pytest.FixtureRequest) -> None:
        bootstrap = os.environ.get("KAFKA_BOOTSTRAP")
        if bootstrap is not None:
            type(self).host_options = {"bootstrap": bootstrap}
        else:
            type(self).host_options = request.getfixturevalue("server").options

    def make_host(self) -> KafkaHost:
        return KafkaHost(EngineContext(self.host_options))


class TestKafkaFaults(OnServer, ServerFaults):
    """A server that dies, stops, or lies."""

    factory = KafkaHost
    kills = (KILLS + 1) // 2
    timeout_s = 5.0
    bears_strangers = True

    async def intrude(self, host: EngineHost, stream: str, data: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.server.options["bootstrap"], "log_level": 0})
        producer.produce(f"cogwork.{stream}", data, partition=0)
        assert producer.flush(10) == 0

    def test_what_comes_when_the_brokers_are_known_to_be_lost_was_not_sent(self) -> None:
        asyncio.run(asyncio.wait_for(self._be_lost(), 60))

    async def _be_lost(self) -> None:
        host = self.make_host(self.timeout_s)
        engine = await opened(host, name())
        await engine.append(Batch.of([b"before"]))
        self.server.kill()
        await asyncio.sleep(1)  # the library is told of it
        with pytest.raises(Unavailable):
            await engine.append(Batch.of([b"while it is away"]))
        await asyncio.to_thread(self.server.start)
        assert (await self._insist(engine, Batch.of([b"after"], b"p"))).first_offset == 1
        await host.close()

    def test_a_topic_that_lost_entries_goes_on_and_so_do_others(self) -> None:
        asyncio.run(asyncio.wait_for(self._lose_entries(), 90))

    async def _lose_entries(self) -> None:
        host = self.make_host(self.timeout_s)
        stream = name()
        lossy, other = await opened(host, stream), await opened(host, name())
        await other.append(Batch.of([b"0"], b"p"))
        for i in range(3):
            await lossy.append(Batch.of([b"%d" % i], b"p", i))
        (log,) = self.server.directory.glob(f"data/cogwork.{stream}-0/*.log")
        size_bytes = log.stat().st_size
        for i in range(2):
            await lossy.append(Batch.of([b"lost"], b"q", i))
        self.server.kill()
        os.truncate(log, size_bytes)
        await asyncio.to_thread(self.server.start)
        assert (await self._insist(lossy, Batch.of([b"3"], b"p", 3))).first_offset == 3
        assert (await self._insist(other, Batch.of([b"1"], b"p", 1))).first_offset == 1
        await host.close()
        host = self.make_host(self.timeout_s)
        lossy = await opened(host, stream)
        found = [each for chunk in await lossy.read(0) for each in chunk.batch.records()]
        assert found == [b"0", b"1", b"2", b"3"]
        assert (await lossy.append(Batch.of([b"4"]))).first_offset == 4
        await host.close()

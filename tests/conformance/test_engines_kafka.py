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

from cogwork.cli.servers.kafka import KafkaServer
from cogwork.consensus.batch import Batch
from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.engine import EngineContext
from cogwork.consensus.errors import Unavailable
from cogwork.consensus.kafka.host import KafkaHost

from .faults import KILLS, ServerFaults, name, opened
from .kafka_jars import jars
from .servers import OnServer, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.consensus.engine import EngineHost


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

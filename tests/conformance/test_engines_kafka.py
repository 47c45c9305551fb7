"""The engine `kafka`, against a broker in KRaft mode, or the one that KAFKA_BOOTSTRAP names.

The mock cluster in the client library is no stand-in: it makes no topics and deletes no records.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

import pytest

pytest.importorskip("confluent_kafka", reason="the extra [kafka] is not installed")

from confluent_kafka import Producer

from cogwork.cli.servers.kafka import KafkaServer
from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.engine import EngineContext
from cogwork.consensus.kafka.host import KafkaHost

from .faults import ServerFaults
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
    kills = 2
    timeout_s = 5.0
    bears_strangers = True

    async def intrude(self, host: EngineHost, stream: str, data: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.server.options["bootstrap"], "log_level": 0})
        producer.produce(f"cogwork.{stream}", data, partition=0)
        assert producer.flush(10) == 0

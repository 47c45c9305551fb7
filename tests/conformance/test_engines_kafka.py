"""The engine `kafka`, against a broker in KRaft mode, or the one that KAFKA_BOOTSTRAP names.

Where neither can be had, the mock cluster inside the client library stands in for the kit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka", reason="the extra [kafka] is not installed")

from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.engine import EngineContext
from cogwork.consensus.kafka import KafkaHost

from .servers.faults import ServerFaults
from .servers.kafka import KafkaServer
from .servers.process import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .servers.process import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    try:
        server = KafkaServer(tmp_path_factory.mktemp("kafka"))
        server.start()
    except Missing as missing:
        pytest.skip(str(missing))
    yield server
    server.kill()


class _OnKafka:
    server: Server

    @pytest.fixture(autouse=True)
    def _use(self, server: KafkaServer) -> None:
        type(self).server = server

    def make_host(self, timeout_s: float = 10.0) -> KafkaHost:
        return KafkaHost(
            EngineContext({"bootstrap": self.server.bootstrap, "timeout_s": timeout_s})
        )


class TestKafka(_OnKafka, EngineConformance):
    """The kit."""


class TestKafkaFaults(_OnKafka, ServerFaults):
    """A server that dies, stops, or lies."""

    kills = 2
    timeout_s = 5.0

"""What sends to Kafka, where the library gives its producer up for good."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

pytest.importorskip("confluent_kafka", reason="the extra [kafka] is not installed")
from confluent_kafka import KafkaError, KafkaException

from cogwork.engines.kafka import host as host_module
from cogwork.engines.kafka import sender as sender_module
from cogwork.engines.kafka.sender import Sender
from cogwork.engines.shared.server import ServerDown
from cogwork.plugin.engine.contract import EngineContext

FATAL = KafkaError._FATAL


class Producer:
    """One that may be broken."""

    def __init__(self, _settings: object) -> None:
        self.complaints = list[KafkaError]()
        self.is_fatal = False
        self.reports = list[Any]()

    def produce(self, _topic: str, _entry: bytes, partition: int, on_delivery: Any) -> None:
        if self.is_fatal:
            raise KafkaException(KafkaError(FATAL, "the producer is broken"))
        self.reports.append(on_delivery)

    def poll(self, _timeout_s: float) -> None:
        if self.complaints:
            raise KafkaException(self.complaints.pop())
        while self.reports:
            self.reports.pop()(KafkaError(KafkaError._MSG_TIMED_OUT), None)
        time.sleep(0.001)

    def purge(self) -> None:
        pass

    def flush(self, _timeout_s: float) -> None:
        pass


@pytest.fixture(autouse=True)
def _producers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "Producer", Producer)


def producer_of(sender: Sender) -> Producer:
    return cast("Producer", sender._producer)


def test_what_was_sent_is_still_reported_after_the_producer_broke() -> None:
    async def story() -> None:
        host = host_module.KafkaHost(EngineContext())
        sender = host.sender
        producer_of(sender).complaints.append(KafkaError(FATAL, "out of order"))
        while not sender.is_broken:
            await asyncio.sleep(0.001)
        with pytest.raises(KafkaException):
            await sender.send("topic", b"entry")
        assert host.sender is not sender, "all streams get another one"
        await host.disconnect()

    asyncio.run(asyncio.wait_for(story(), 5))


def test_what_a_broken_producer_does_not_take_was_not_sent() -> None:
    async def story() -> None:
        sender = Sender({})
        producer_of(sender).is_fatal = True
        with pytest.raises(ServerDown, match="the producer is broken") as told:
            sender.send("topic", b"entry")
        assert not told.value.may_have_happened
        assert sender.is_broken
        sender.close()

    asyncio.run(asyncio.wait_for(story(), 5))

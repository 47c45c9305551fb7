"""Who reads a topic, where its broker goes before the reading begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cogwork.engines.shared.server import ServerDown
from cogwork.plugin.engine.durability import Durability

pytest.importorskip("confluent_kafka", reason="the extra [kafka] is not installed")
from cogwork.engines.kafka import log as log_module


class Consumer:
    """One that cannot begin anywhere."""

    def __init__(self, made: list[Consumer]) -> None:
        self.is_closed = False
        made.append(self)

    async def seek(self, _position: int) -> None:
        raise ServerDown("no broker")

    async def close(self) -> None:
        self.is_closed = True


def test_a_consumer_that_cannot_begin_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Consumer]()
    monkeypatch.setattr(log_module, "KafkaReader", lambda *_: Consumer(made))
    host: Any = None
    log = log_module.KafkaLog(host, "topic", {}, Durability.MEMORY)
    with pytest.raises(ServerDown, match="no broker"):
        asyncio.run(log.reader(1))
    assert [each.is_closed for each in made] == [True]

"""Sends entries to Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from cogwork.consensus.kafka.errors import REQUEST_TIMEOUT_S, translated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import KafkaError

__all__ = ("ENTRY_BYTES_MAX", "Sender")

ENTRY_BYTES_MAX = (1 << 20) - 1024
"""Kafka takes messages of 1 MiB, if `message.max.bytes` does not say otherwise."""

POLL_S = 0.2
QUEUE_KIB = 64 << 10


class Sender:
    """An idempotent producer, and the thread in which it reports.

    Args:
        settings: librdkafka's.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.is_broken = False
        with translated():
            self._producer = Producer(
                {
                    **settings,
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 0,
                    "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
                    "request.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
                    "message.max.bytes": ENTRY_BYTES_MAX + 1024,
                    "queue.buffering.max.kbytes": QUEUE_KIB,
                }
            )
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="cogwork-kafka", daemon=True)
        self._thread.start()

    async def warm(self, topic: str) -> None:
        """Has the producer know the topic's leader."""
        with translated():
            await asyncio.to_thread(self._producer.list_topics, topic, REQUEST_TIMEOUT_S)

    def send(self, topic: str, entry: bytes) -> asyncio.Future[int]:
        """Sends a message; its offset comes later."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()

        def report(error: KafkaError | None, message: Any) -> None:  # noqa: ANN401 # the library's
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._report, answer, error, message)

        self._producer.produce(topic, entry, partition=0, on_delivery=report)
        return answer

    def close(self) -> None:
        """Ends it, with what it has not sent."""
        self._is_closed.set()
        self._thread.join()
        with contextlib.suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(0.1)

    def _report(
        self,
        answer: asyncio.Future[int],
        error: KafkaError | None,
        message: Any,  # noqa: ANN401 # the library's
    ) -> None:
        self.is_broken = self.is_broken or (error is not None and error.fatal())
        if answer.done():
            return
        if error is not None:
            answer.set_exception(KafkaException(error))
        else:
            answer.set_result(message.offset())

    def _poll(self) -> None:
        while not self._is_closed.is_set():
            self._producer.poll(POLL_S)

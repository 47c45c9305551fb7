"""Sends entries to Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from cogwork.engines.kafka.errors import REQUEST_TIMEOUT_S, translated
from cogwork.engines.shared.server import ServerDown

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("ENTRY_BYTES_MAX", "Sender")

ENTRY_BYTES_MAX = (1 << 20) - 1024
"""Kafka takes messages of 1 MiB, if `message.max.bytes` does not say otherwise."""

POLL_S = 0.2
QUEUE_KIB = 64 << 10


class Sender:
    """An idempotent producer, and the thread in which it reports.

    Args:
        settings: librdkafka's.

    Attributes:
        is_broken: Whether it sends nothing any more: the library demands that of a producer whose
            messages are not where it had been told they are.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.is_broken = False
        self._is_cut_off = False
        with translated():
            self._producer = Producer(
                {
                    **settings,
                    "error_cb": self._note_error,
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
        """Have the producer know the topic's leader."""
        with translated():
            await asyncio.to_thread(self._producer.list_topics, topic, REQUEST_TIMEOUT_S)

    def send(self, topic: str, entry: bytes) -> asyncio.Future[int]:
        """Send a message; its offset comes later.

        Raises:
            KafkaException: The library does not take it.
            ServerDown: All brokers were lost since something was sent. Nobody has to doubt what was
                not sent: the next one is, once a broker has answered something else. Or the
                producer is broken; the host has another one for the next.
        """
        if self._is_cut_off:
            self._is_cut_off = False
            raise ServerDown("Kafka: no broker can be reached", may_have_happened=False)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()

        def report(error: KafkaError | None, message: Any) -> None:  # noqa: ANN401 # the library's
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._report, answer, error, message)

        try:
            self._producer.produce(topic, entry, partition=0, on_delivery=report)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._FATAL:
                raise
            self.is_broken = True
            raise ServerDown(f"Kafka: {error.args[0].str()}", may_have_happened=False) from error
        return answer

    def close(self) -> None:
        """End it, with what it has not sent."""
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

    def _note_error(self, error: KafkaError) -> None:
        """Take what the library complains of, in its thread; whoever asks is answered."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._is_cut_off = True

    def _poll(self) -> None:
        while not self._is_closed.is_set():
            try:
                self._producer.poll(POLL_S)
            except KafkaException:
                # The producer is of no more use; what it was given is still reported.
                self.is_broken = True

"""Who reads a topic."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from cogwork.engines.kafka.errors import REQUEST_TIMEOUT_S, translated
from cogwork.engines.shared.server import ServerDown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cogwork.engines.kafka.absence import Absence

__all__ = ("KafkaReader",)

T = TypeVar("T")

POLL_S = 0.2
READ_ENTRIES = 512
READ_KIB = 8 << 10
FETCH_KIB = 64


class KafkaReader:
    """A consumer, with a thread of its own.

    Args:
        settings: librdkafka's.
        topic: What it reads.
        absence: Whether the topic is there.
        is_single: Whether it fetches entries one by one: it reads little ahead, and does not wait
            at the broker for more, behind which the next fetch would have to wait, too.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        absence: Absence,
        is_single: bool = False,
    ) -> None:
        read_kib = FETCH_KIB if is_single else READ_KIB
        with translated():
            self._consumer = Consumer(
                {
                    **settings,
                    "group.id": "cogwork",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "queued.max.messages.kbytes": read_kib,
                    "fetch.message.max.bytes": read_kib << 10,
                    "fetch.queue.backoff.ms": 5,
                    "fetch.error.backoff.ms": 50,
                    "fetch.wait.max.ms": 1 if is_single else 100,
                    "allow.auto.create.topics": False,
                }
            )
        self._partition = TopicPartition(topic, 0)
        self._absence = absence
        self._is_warm = False
        self._thread = ThreadPoolExecutor(1, "cogwork-kafka")

    async def seek(self, position: int) -> None:
        """Begin at a position."""
        if not self._is_warm:
            # A consumer that does not know the leader looks for it twice a second.
            ask = partial(self._consumer.list_topics, timeout=REQUEST_TIMEOUT_S)
            await self._run(ask, self._partition.topic)
            self._is_warm = True
        offset = position - 1 if position > 1 else OFFSET_BEGINNING
        place = TopicPartition(self._partition.topic, 0, offset)
        await self._run(self._consumer.assign, [place])

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Return what follows; nothing where nothing came in time."""
        limit_s = asyncio.get_running_loop().time() + wait_s
        while True:
            entries = await self._run(self._poll)
            if entries or asyncio.get_running_loop().time() >= limit_s:
                return entries

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Return the entry at a position, which is there, or the next one."""
        await self.seek(position)
        found = await self.next(REQUEST_TIMEOUT_S)
        await self._run(self._consumer.unassign)
        if not found:
            raise ServerDown("Kafka: the broker does not answer", may_have_happened=False)
        return found[0]

    async def ends(self) -> tuple[int, int]:
        """Return the positions of the first and the last entry."""
        ask = partial(self._consumer.get_watermark_offsets, timeout=REQUEST_TIMEOUT_S, cached=False)
        found = await self._run(ask, self._partition)
        if found is None:
            raise ServerDown("Kafka: the broker does not answer", may_have_happened=False)
        self._absence.end()
        first, end = found
        return first + 1, end

    async def close(self) -> None:
        """End it; the thread ends when it has."""
        self._thread.submit(self._consumer.close)
        self._thread.shutdown(wait=False)

    def _poll(self) -> list[tuple[int, bytes]]:
        first = self._consumer.poll(POLL_S)
        if first is None:
            return []
        entries = []
        for message in (first, *self._consumer.consume(READ_ENTRIES, 0)):
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    continue
                raise KafkaException(error)
            entries.append(((message.offset() or 0) + 1, message.value() or b""))
        return entries

    async def _run(self, call: Callable[..., T], *arguments: object) -> T:
        try:
            with self._absence.judged(), translated():
                return await asyncio.get_running_loop().run_in_executor(
                    self._thread, call, *arguments
                )
        except RuntimeError as error:
            raise ServerDown(f"Kafka: {error}", may_have_happened=False) from error

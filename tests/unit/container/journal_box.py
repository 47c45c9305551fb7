"""A container's journals of queues, over a write-ahead log in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kept_queues import KeptQueue

from cogwork.container.journals.journals import QueueJournals
from cogwork.container.journals.records import FIRST_GROUP
from cogwork.log.record import Record

if TYPE_CHECKING:
    from cogwork.amqp.errors import CogworkError

__all__ = ("Box", "FakeLog")


class FakeLog:
    """A write-ahead log in memory, durable when a test says so."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.end_lsn = 0
        self.durable_lsn = 0
        self.problem: CogworkError | None = None
        self.refused = 0
        self.low: dict[int, int] = {}

    def append(self, group: int, kind: int, index: int, term: int, payload: bytes) -> int:
        if self.problem is not None:
            self.refused += 1
            raise self.problem
        lsn = self.end_lsn
        self.records.append(Record(lsn, group, kind, index, term, payload))
        self.end_lsn += 40 + len(payload)
        return lsn

    def flush(self) -> None:
        """Nothing to do."""

    def low_water(self, group: int, lsn: int) -> None:
        self.low[group] = lsn

    room_bytes = 64 << 20

    @property
    def waiting_bytes(self) -> int:
        return self.end_lsn - self.durable_lsn

    def oldest_groups(self) -> list[int]:
        """The only queue holds an old file, until it has written its items anew."""
        return [] if self.low.get(FIRST_GROUP) else [FIRST_GROUP]

    def kinds(self) -> list[int]:
        return [record.kind for record in self.records]


class Box:
    """A container's journals with one queue, step by step."""

    def __init__(self) -> None:
        self.queue = KeptQueue()
        self.queue.store.journal = None
        self.journals = QueueJournals(self.queue.core, "box", has_disk=True)
        self.log = FakeLog()
        self.handle = self.journals.open("", "queue/a", {"priorities": 3}, self.queue.store)
        self.journals.start(self.log, {})  # type: ignore[arg-type]  # as much of a log as is needed

    async def turn(self, *, is_durable: bool = True) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            if is_durable:
                self.log.durable_lsn = self.log.end_lsn
                self.journals.durable(self.log.end_lsn)
        self.queue.publisher.hear()

    @property
    def accepted(self) -> int:
        return len(self.queue.publisher.dispositions)

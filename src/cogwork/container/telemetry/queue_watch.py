"""The audit of one queue: what happens to its items, appended to a stream.

Theory of operation. The audit events of a store (`dataplane.queue.audit_events`) are facts; they
are taken in batches, a batch is appended once what it says is durable in the queue, and a record
that the stream does not take is appended again a little later: one batch, and once some of that was
taken, those behind it. A batch that left nothing behind is a mark: it is written to the queue's
journal when it is taken, and again when it is told, so that after a restart the journal knows what
may not have been told. Where too much waits, or something was not taken, no more facts are; the
store counts what it has no room for, and that count is told in its turn.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from cogwork.container.telemetry.appender import head_of, message_of
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.link import Link
from cogwork.dataplane.queue.audit_events import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.telemetry.appender import Appender
    from cogwork.container.telemetry.audits import Audits
    from cogwork.dataplane.queue.audit_events import AuditEvents, Fact
    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.node import Subscription

__all__ = ("QueueWatch",)

BATCH, BATCH_MAX = 500, 4000
"""Facts that are told in one turn of the loop: two milliseconds, more where many wait."""

SHARE = 8
"""Of what waits such a part is told in one turn."""

HELD_MAX = 16_384
"""Facts of one queue that were taken and are not told: what is more stays with the store."""

PAUSE_S = 1.0
"""How soon an event that was not taken is appended again."""

ROOM_PAUSE_S = 0.05
"""The same of one for which there was no room beside other queues' events."""

NAMES_MAX = 4096
"""Consumers of a queue whose names are known; those that came last."""

_MISSED_HEAD = head_of("missed")


class _Batch:
    """Facts that were taken together.

    Attributes:
        facts: Those of it that are not told yet.
        mark: What the journal knows it by; None where it left something behind.
        failed: Those that the stream did not take.
        is_sent: Whether they were appended.
    """

    __slots__ = ("facts", "failed", "is_sent", "mark")

    def __init__(self, facts: list[Fact], mark: int | None) -> None:
        self.facts = facts
        self.mark = mark
        self.failed: list[Fact] = []
        self.is_sent = False


class QueueWatch:
    """One queue's audit. Owned by the audits."""

    def __init__(
        self,
        names: tuple[str, str],
        store: Store,
        audit_events: AuditEvents,
        *,
        sample: float,
        appender: Appender,
        when_durable: Callable[[Callable[[bool], object]], object],
        owner: Audits,
    ) -> None:
        """Tell nothing before `gather`.

        Args:
            names: The container's id, and the queue's address, after its virtual host's name and
                a colon where that is not the default one.
            store: The queue's items.
            audit_events: Notes what happens to them.
            sample: The share of the items that it follows.
            appender: Appends to the stream.
            when_durable: Has a call made once what happened so far is durable.
            owner: Whose it is.
        """
        container, queue = (msgspec.json.encode(each).decode() for each in names)
        self._where = f'"queue":{queue},"container":{container}'
        self._item = f'{self._where},"sample":{sample:g},"item":"{audit_events.shard:08x}'
        self._middles = (_middle(names[1], "accepted"), _middle(names[1], "settled"))
        self._store = store
        self._audit_events = audit_events
        self._appender = appender
        self._when_durable = when_durable
        self._owner = owner
        self._consumers: dict[int, str] = {}
        self._nameless: dict[int, Subscription] = {}
        self._batches: deque[_Batch] = deque()
        self._held = 0
        self._retry: asyncio.TimerHandle | None = None
        self._pending = audit_events.pending
        self._mark = time.time_ns() // 1000
        self._told_missed = 0
        self._is_telling_missed = False

    def consumer(self, serial: int, subscription: Subscription) -> None:
        """Take note of a consumer; see `plugin.audits.Watch`."""
        self._nameless[serial] = subscription

    def close(self) -> None:
        """The queue is no more here; what is under way goes on."""
        self._store.audit_events = None
        self._owner.forget(self)

    def gather(self) -> bool:
        """Take the next facts, and have them told; return whether there are more."""
        audit_events = self._audit_events
        if audit_events.pending is not self._pending:
            # The items are another container's now: what was not told, that one tells.
            self._pending = audit_events.pending
            self._batches.clear()
            self._held = 0
        self._name_consumers()
        if self._is_held_up:
            return False
        self._tell_missed()
        count = min(max(BATCH, audit_events.waiting // SHARE), BATCH_MAX, self._appender.room)
        if audit_events.is_empty or count <= 0:
            return False
        facts = audit_events.take(count)
        mark = self._next_mark() if audit_events.is_empty else None
        batch = _Batch(facts, mark)
        self._batches.append(batch)
        self._held += len(facts)
        audit_events.pending.append(facts)
        self._when_durable(partial(self._send, batch))
        return not audit_events.is_empty

    @property
    def _is_held_up(self) -> bool:
        """Whether what was taken has to be told before more is.

        What a stream rejects takes up none of the appender's room any more, but it is still here.
        """
        return self._held >= HELD_MAX or any(batch.failed for batch in self._batches)

    def _next_mark(self) -> int | None:
        journal = self._store.journal
        if journal is None:
            return None
        self._mark += 1
        journal.gathered(self._mark)
        return self._mark

    def _name_consumers(self) -> None:
        """Name those that are new: when they came, their links were not theirs yet."""
        for serial, subscription in self._nameless.items():
            self._consumers[serial] = msgspec.json.encode(_name_of(subscription)).decode()
        self._nameless.clear()
        while len(self._consumers) > NAMES_MAX:
            del self._consumers[next(iter(self._consumers))]

    # -- telling

    def _is_ours(self, batch: _Batch) -> bool:
        return self._audit_events.pending is self._pending and batch in self._batches

    def _send(self, batch: _Batch, is_durable: bool) -> None:
        """Append the records of a batch, unless what they say never became true."""
        if not self._is_ours(batch):
            return
        facts = batch.facts if not batch.is_sent else batch.failed
        batch.is_sent = True
        batch.failed = []
        if not is_durable or not facts:
            self._end(batch)
            return
        if len(facts) > self._appender.room:
            batch.failed = facts
            self._plan_retry(ROOM_PAUSE_S)
            return
        messages = render(facts, self._item, self._consumers, self._middles)
        self._appender.append(messages, partial(self._done, batch, facts))
        self._owner.flush()

    def _done(self, batch: _Batch, facts: list[Fact], failed: list[int]) -> None:
        """Have those appended again that were not taken: at once where others were."""
        if not self._is_ours(batch):
            return
        batch.failed = [facts[at] for at in failed]
        if not failed:
            self._end(batch)
        self._plan_retry(0.0 if len(failed) < len(facts) else PAUSE_S)

    def _plan_retry(self, pause_s: float) -> None:
        if self._retry is None and any(batch.failed for batch in self._batches):
            self._retry = asyncio.get_running_loop().call_later(pause_s, self._try_again)

    def _try_again(self) -> None:
        """Append the first batch again that failed; those behind it wait for how it goes."""
        self._retry = None
        batch = next((each for each in self._batches if each.failed), None)
        if batch is not None:
            self._send(batch, True)

    def _end(self, batch: _Batch) -> None:
        """Have the journal forget what was told, in order."""
        if not self._is_ours(batch):
            return
        self._held -= len(batch.facts)
        batch.facts = []
        while self._batches and self._batches[0].is_sent and not self._batches[0].facts:
            first = self._batches.popleft()
            self._pending.pop(0)
            journal = self._store.journal
            if first.mark is not None and journal is not None:
                journal.reported(first.mark)
        if not self._audit_events.is_empty:
            self._owner.soon()

    def _tell_missed(self) -> None:
        """Tell how many facts there was no room for, once there is room again."""
        count = self._audit_events.missed - self._told_missed
        if not count or self._is_telling_missed or self._appender.room <= 0:
            return
        self._is_telling_missed = True
        time_us = time.time_ns() // 1000
        body = f'{{"event":"missed",{self._where},"count":{count},"time_us":{time_us}}}'
        message = message_of(_MISSED_HEAD, body.encode())
        self._appender.append([message], partial(self._told, count))

    def _told(self, count: int, failed: list[int]) -> None:
        self._is_telling_missed = False
        self._told_missed += 0 if failed else count


def _name_of(subscription: Subscription) -> str:
    """Name a consumer for people: the container-id of its client, and its link."""
    link = subscription.link.owner
    if subscription.is_far and subscription.remote_consumer:
        return subscription.remote_consumer
    if not isinstance(link, Link):
        return subscription.link_id
    remote = link.session.connection.remote
    return f"{'' if remote is None else remote.container_id}/{link.name}"


def _middle(queue: str, event: str) -> bytes:
    """Encode an event's properties from user-id to reply-to: `to` is the queue."""
    return b"\x40" + encode(queue) + encode(event) + b"\x40"

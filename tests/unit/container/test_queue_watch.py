"""What the audit of a queue keeps, and tells, where its stream does not take its events."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from hosted import Hosted

from cogwork.container.telemetry import queue_watch
from cogwork.container.telemetry.appender import Appender, head_of, message_of
from cogwork.container.telemetry.queue_watch import PAUSE_S, QueueWatch
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.queue.audit_events import AuditEvents
from cogwork.dataplane.queue.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.container.telemetry.audits import Audits

FACTS_MAX = 2000
BATCH, HELD_MAX = 500, 1000
MESSAGE = b"\x00\x53\x75\xa0\x01a"

Event = dict[str, Any]


class Later:
    """Stands in for the event loop: what is to be done later is done when a test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], object]]] = []

    def call_later(self, pause_s: float, call: Callable[..., object], *given: object) -> object:
        self.calls.append((pause_s, lambda: call(*given)))
        return self

    def pass_by(self) -> None:
        """Do what was to be done later until now."""
        calls, self.calls = self.calls, []
        for _, call in calls:
            call()


class Stream:
    """Stands in for an appender: takes events, rejects them, or leaves them under way."""

    def __init__(self) -> None:
        self.room = 16384
        self.takes = True
        self.is_slow = False
        self.asked = 0
        self.told: list[Event] = []
        self.under_way: list[tuple[Sequence[bytes], Callable[[list[int]], object]]] = []

    def append(self, messages: Sequence[bytes], on_done: Callable[[list[int]], object]) -> None:
        self.asked += 1
        self.under_way.append((messages, on_done))
        if not self.is_slow:
            self.end()

    def end(self) -> None:
        """Give everything under way its outcome."""
        ending, self.under_way = self.under_way, []
        for messages, on_done in ending:
            if self.takes:
                bodies = (Message.decode(each).body for each in messages)
                self.told += [json.loads(cast("bytes", body)) for body in bodies]
            on_done([] if self.takes else list(range(len(messages))))


class Watched:
    """A queue in memory that is audited."""

    def __init__(self) -> None:
        self.later = Later()
        self.stream = Stream()
        self.store = Store(Core(), 7)
        self.audit_events = AuditEvents(self.store.items, 7, facts_max=FACTS_MAX)
        self.store.audit_events = self.audit_events
        self.watch = QueueWatch(
            ("here", "work/jobs"),
            self.store,
            self.audit_events,
            sample=1.0,
            appender=cast("Appender", self.stream),
            when_durable=lambda call: call(True),
            owner=cast("Audits", self),
        )

    def put(self, count: int) -> None:
        for _ in range(count):
            self.store.put(MESSAGE)

    def gather(self) -> None:
        while self.watch.gather():
            pass

    def flush(self) -> None:
        """Is the audits'."""

    def soon(self) -> None:
        """Is the audits': here a test gathers."""

    @property
    def held(self) -> int:
        """Facts that were taken and are not told."""
        return sum(len(each) for each in self.audit_events.pending)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: watched.later)
    monkeypatch.setattr(queue_watch, "HELD_MAX", HELD_MAX)
    return watched


def test_what_a_stream_rejects_stays_in_the_queue_and_the_rest_is_missed(queue: Watched) -> None:
    queue.stream.takes = False
    for _ in range(10):
        queue.put(BATCH)
        queue.gather()
    assert queue.held <= BATCH
    assert (queue.audit_events.waiting, queue.audit_events.missed) == (
        FACTS_MAX,
        10 * BATCH - FACTS_MAX - BATCH,
    )
    queue.stream.takes = True
    queue.later.pass_by()
    queue.gather()
    missed = [each["count"] for each in queue.stream.told if each["event"] == "missed"]
    assert missed == [10 * BATCH - FACTS_MAX - BATCH]
    positions = [each["position"] for each in queue.stream.told if each["event"] == "accepted"]
    assert positions == list(range(1, FACTS_MAX + BATCH + 1))
    assert (queue.held, queue.later.calls) == (0, [])


def test_no_more_is_taken_than_may_be_under_way(queue: Watched) -> None:
    queue.stream.is_slow = True
    queue.put(FACTS_MAX)
    queue.gather()
    assert queue.held == HELD_MAX
    queue.stream.end()
    queue.gather()
    assert queue.held == HELD_MAX


def test_one_batch_is_tried_again_and_the_others_once_it_is_taken(queue: Watched) -> None:
    queue.stream.is_slow = True
    queue.put(2 * BATCH)
    queue.gather()
    queue.stream.takes = queue.stream.is_slow = False
    queue.stream.end()
    assert [pause_s for pause_s, _ in queue.later.calls] == [PAUSE_S]
    for _ in range(5):
        asked = queue.stream.asked
        queue.later.pass_by()
        assert queue.stream.asked == asked + 1
        assert [pause_s for pause_s, _ in queue.later.calls] == [PAUSE_S]
    queue.stream.takes = True
    queue.later.pass_by()
    assert [pause_s for pause_s, _ in queue.later.calls] == [0]
    queue.later.pass_by()
    assert [each["position"] for each in queue.stream.told] == list(range(1, 2 * BATCH + 1))
    assert queue.held == 0


def test_what_other_queues_leave_no_room_for_waits_and_is_not_rejected(queue: Watched) -> None:
    queue.watch._when_durable = lambda call: queue.later.call_later(0, call, True)
    queue.put(BATCH)
    queue.gather()
    queue.stream.room = BATCH - 1
    queue.later.pass_by()
    queue.later.pass_by()
    assert queue.stream.asked == 0
    queue.stream.room = BATCH
    queue.later.pass_by()
    assert len(queue.stream.told) == BATCH


def test_only_what_nobody_hears_of_is_missed() -> None:
    vhost = Hosted().container.vhosts[""]
    appender = Appender(vhost, "nowhere/at/all", 10)
    record = message_of(head_of("settled"), b"{}")
    failed: list[int] = []
    appender.append([record] * 3, failed.extend)
    vhost.core.flush()
    assert (failed, appender.missed) == ([0, 1, 2], 0)
    appender.append([record] * 3)
    vhost.core.flush()
    assert appender.missed == 3

"""When the replicas of a container do something, and in which order.

Theory of operation. There is at most one turn after each round of readers of the event loop:
outboxes send what they have, the groups say what they want done, frames go to other containers,
writes to the write-ahead log in one piece, committed entries to the replicas. Whoever brings
something (the disk thread, another container, a user) asks for a turn; a timer does where
something waits for a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.replication.ready_queue import TICK_S
from cogwork.replication.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.raft.host import RaftHost
    from cogwork.replication.call_tracker import CallTracker, Carrier
    from cogwork.replication.ready_queue import ReadyQueue
    from cogwork.replication.replicas import Replicas
    from cogwork.replication.service import RaftService
    from cogwork.replication.writing import Writing

__all__ = ("FRAME", "Scheduler")

FRAME = b"\x00"
"""The first octet of a datagram with a frame of consensus."""

GATHER_BYTES = 256 << 10
"""With more on its way to the disk, a turn waits for what the next round of readers brings: what
is written together, sent together and applied together costs once what it costs."""

TRIM_S = 1.0
"""How often it is looked for what is too old, and whether others should lead."""


class Scheduler:
    """Takes turns, at most one after each round of readers; owned by the service."""

    def __init__(
        self,
        service: RaftService,
        host: RaftHost,
        *,
        replicas: Replicas,
        writing: Writing,
        ready_queue: ReadyQueue,
        call_tracker: CallTracker,
        carrier: Carrier,
    ) -> None:
        """Take none before one is asked for.

        Args:
            service: The container's.
            host: Has the groups.
            replicas: Do what the groups want done.
            writing: Takes what the groups want written.
            ready_queue: Says who has something to send, and who waits for a time.
            call_tracker: Forgets calls that nobody answers.
            carrier: The way to other containers.
        """
        self._service = service
        self._host = host
        self._replicas = replicas
        self._writing = writing
        self._ready_queue = ready_queue
        self._call_tracker = call_tracker
        self._carrier = carrier
        self._timer = Timer(self.soon)
        self._call_soon: Callable[[Callable[[], None]], object] | None = None
        self._is_due = False
        self._has_gathered = False
        self._is_closed = False
        self._wake_s = 0.0
        self._ticked_s = 0.0
        self._trimmed_s = 0.0

    def soon(self) -> None:
        """Ask for a turn, once the readers of the event loop have brought what there is now."""
        if not self._is_due and not self._is_closed:
            self._is_due = True
            if self._call_soon is None:
                loop = asyncio.get_running_loop()
                self._call_soon = getattr(loop, "call_after_readers", loop.call_soon)
            self._call_soon(self._take)

    def soon_if_ready(self) -> None:
        """Ask for a turn where a group wants something done."""
        if not self._is_due and self._host.has_more:
            self.soon()

    def close(self) -> None:
        """Take no more."""
        self._is_closed = True
        self._timer.cancel()

    def _take(self) -> None:
        self._is_due = False
        if self._is_closed:
            return
        host = self._host
        if host.unpersisted_bytes > GATHER_BYTES and not self._has_gathered:
            self._has_gathered = True
            self.soon()
            return
        self._has_gathered = False
        now_s = self._service.now_s()
        try:
            self._writing.look_at_pace()
            if now_s >= self._wake_s:
                host.tick(now_s)
            if now_s - self._ticked_s >= TICK_S:
                self._ticked_s = now_s
                self._tick(now_s)
            self._ready_queue.send(now_s)
            self._do_what_is_ready()
            self.soon_if_ready()
            self._carrier.flush()
        finally:  # whatever fails, there are more turns
            self._wake_s = host.wake_s
            self._timer.set(min(now_s + self._ready_queue.pause_s, self._wake_s), now_s)

    def _do_what_is_ready(self) -> None:
        ready = self._host.ready()
        members = self._replicas.members
        for number, each in ready.groups:
            if each.write is not None:
                self._writing.add(members[number].journal, each.write)
        if ready.number:
            self._writing.end_turn(ready.number)
        for container, frame in ready.frames:
            self._carrier.send(container, FRAME, *frame)
        self._write()  # first: whoever is sent something may take the processor from here
        if ready.frames:
            self._carrier.flush()  # others wait for that longer than for what comes after it
        self._replicas.take_all(ready.groups, ready.faults)
        for report in ready.reports:
            self._service.report(report)

    def _write(self) -> None:
        if number := self._writing.flush():
            self._host.persisted(number, self._service.now_s())

    def _tick(self, now_s: float) -> None:
        self._call_tracker.tick(now_s)
        if now_s - self._trimmed_s >= TRIM_S:
            self._trimmed_s = now_s
            self._replicas.look_to_trim()
            self._replicas.look_whether_to_step_back()
        self._ready_queue.tick(now_s)

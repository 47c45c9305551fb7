"""Queues on disk: each one's records on their way to the write-ahead log, and back from it.

Theory of operation. A queue of durability `disk` is a group of the log. At the end of each turn of
the loop what its journal has is appended as one record; whatever the queue did since then has made
its mark on the output (`dataplane.output`), and the barrier of the turn is released once the log is
durable up to there. Nothing waits, so many turns share one write.

Where the log takes nothing, for want of space or because too much waits for the disk, records queue
up here, and the queues take and give nothing until they have gone. What a failed disk leaves
unwritten never becomes true: the connections that would tell of it are closed.

When a queue holds the log's oldest file, a checkpoint writes its items anew, part by part; also one
that is on disk and not had here, as nobody declares it or its virtual host is not there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from cogwork.amqp.errors import Condition
from cogwork.container.federation.shards import DURABLE_LIFE, shard_of
from cogwork.container.journals.barriers import Barrier, Barriers
from cogwork.container.journals.low_space import LowSpace
from cogwork.container.journals.paging import Pager, Paging
from cogwork.container.journals.queue_journal import QueueJournal, StrandedQueue
from cogwork.container.journals.records import (
    BEGIN,
    CHANGES,
    END,
    FIRST_GROUP,
    GONE,
    PART,
    Begin,
    Replayed,
)
from cogwork.container.journals.together import ALONE, Place, Together, places_for
from cogwork.container.vhost.declarations import Declarations
from cogwork.dataplane.queue.refusals import DISK_FAILED
from cogwork.dataplane.queue.restoration import Checkpoint
from cogwork.log.errors import LogError, UnreadableRecord
from cogwork.log.file_name import file_name
from cogwork.log.position import number_of, position_of
from cogwork.plugin.management import NOT_FOUND, ManagementError
from cogwork.plugin.node import Refused
from cogwork.plugin.queue_options import QueueOptions
from cogwork.plugin.shape import keys_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from cogwork.container.journals.durable_queue import DurableQueue
    from cogwork.container.journals.sent_file import SentFile
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.queue.sent_marks import SentMarks
    from cogwork.dataplane.queue.store import Store
    from cogwork.log.errors import LogFailed
    from cogwork.log.record import Record
    from cogwork.log.wal import Wal

__all__ = ("QueueJournals",)

PART_BYTES = 1 << 20
"""What a checkpoint writes in one turn."""

PARTS_WAITING_BYTES = 8 << 20
"""While more than this waits for the disk a checkpoint waits, too: a log that takes no more has the
queues take nothing either."""

PATIENCE_S = 5.0
"""How long connections may be held for a log without room, before they are closed with the reason:
their peers would take them for dead."""

RETRY_S = 0.05
"""How often a log that takes nothing is asked again, beside whenever more of it is durable."""

log = logging.getLogger("cogwork")


class _Append(NamedTuple):
    """A record that is to be appended."""

    queue: QueueJournal
    kind: int
    payload: bytes
    place: Place = ALONE


class QueueJournals:
    """All queues on this container's disk. Owned by the container.

    Attributes:
        shard: The number of this container's parts of queues on disk, the same in all its lives.
        has_disk: Whether there is a data directory.
        barriers: The turns whose output is held.
        low_space: What they do while the disk fills up.
        paging: What they do with what is more than memory may hold.
    """

    def __init__(self, core: Core, container_id: str, *, has_disk: bool) -> None:
        """Start with none yet.

        Args:
            core: Whose output is held.
            container_id: Its id.
            has_disk: Whether there is a data directory.
        """
        self.shard = shard_of(container_id, DURABLE_LIFE)
        self._core = core
        self.has_disk = has_disk
        self._has_told = has_disk
        self._wal: Wal | None = None
        self._queues: dict[int, QueueJournal] = {}
        self._replayed: dict[int, Replayed] = {}
        self._next_group = FIRST_GROUP
        self._early: list[QueueJournal] = []
        self._lost: set[int] = set()
        self._dirty: list[DurableQueue] = []
        self._pressed: dict[DurableQueue, None] = {}
        self._waiting: deque[_Append | Barrier] = deque()
        self._together = Together()
        self._is_together = False
        self.barriers = Barriers(core)
        self._is_due = False
        self._is_shut = False
        self._is_closed = False
        self.low_space = LowSpace(self._queues)
        self.paging = Paging(core)
        self._marks: SentMarks | None = None
        self._failure: LogFailed | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None

    # -- queues come and go

    def open(
        self, vhost: str, address: str, options: Mapping[str, object], store: Store
    ) -> QueueJournal:
        """Have a queue's changes written down; see `cogwork.plugin.journals.Journals`.

        Before `start` that only takes note of the queue.
        """
        if not self.has_disk:
            raise Refused(
                f"{address!r:.200} is to be kept on disk, and this container has no data "
                "directory: start it with data_dir, or --data DIR",
                Condition.NOT_IMPLEMENTED,
            )
        if self._failure is not None:
            raise Refused(str(self._failure), DISK_FAILED)
        known = keys_at(QueueOptions, ())
        given = {key: value for key, value in options.items() if key in known}
        queue = QueueJournal(self, (vhost, address), given, store)
        if self._wal is None:
            self._early.append(queue)
        else:
            self._attach(queue)
            self._core.hold_output()
        return queue

    def note_in_memory(self, address: str) -> None:
        """Log, once, that a durable message is kept in memory, as there is no data directory."""
        if not self._has_told:
            self._has_told = True
            log.warning(
                "queue %r keeps durable messages in memory, because this container has no data "
                "directory: they are lost when it stops (set data_dir or --data DIR; "
                "`cogwork status` counts them)",
                address,
            )

    def _group_of(self, vhost: str, address: str) -> int:
        for group, replayed in self._replayed.items():
            if (replayed.begin.vhost, replayed.begin.address) == (vhost, address):
                return group
        self._next_group += 1
        return self._next_group - 1

    def _attach(self, queue: QueueJournal) -> None:
        queue.group = self._group_of(queue.vhost, queue.address)
        self._queues[queue.group] = queue
        replayed = self._replayed.pop(queue.group, None)
        stranded = self._strandeds().get(queue.group)
        if stranded is not None:  # an account that has no end does not count
            self.abandon(stranded)
            stranded.store.close()
        queue.files = self.paging.files_of(queue.group)
        journal = queue.fill(replayed, self._core, partial(self.note, queue))
        if queue.files is not None:
            queue.pager = Pager(self.paging, queue, queue.files)
            named = () if replayed is None else replayed.image.pages
            queue.pager.begin({each.file for each in named}, has_account=replayed is None)
        if self._marks is None:
            queue.store.delivers_ahead = False
        elif queue.store.delivers_ahead:
            journal.mark_sent(self._marks, queue.group)
        if replayed is None:
            queue.write(BEGIN, queue.begin())
            queue.write(END, b"")
            self.commit_soon()
        elif replayed.begin.options != dict(queue.options):
            self.renew(queue)  # what is kept of it goes by the options that are written down
        journal.is_open = not self._is_shut
        journal.is_low = self.low_space.is_low

    def append(self, queue: QueueJournal, kind: int, payload: bytes) -> None:
        """Have a record appended at the end of the turn, behind all before it."""
        self._waiting.append(_Append(queue, kind, payload))

    def forget(self, queue: QueueJournal) -> None:
        """Give a queue up for good."""
        self._queues.pop(queue.group, None)
        self._pressed.pop(queue, None)
        queue.store.journal = queue.journal = None
        queue.write(GONE, b"")
        if queue.pager is not None:
            self.barriers.when_over(queue.pager.delete)
        self._core.hold_output()
        self.commit_soon()

    # -- the start

    def replay(self, record: Record) -> None:
        """Take a record of the log, before `start`.

        Raises:
            UnreadableRecord: It is none of a queue's, or has another version.
        """
        self._next_group = max(self._next_group, record.group + 1)
        for each in self._together.take(record):
            self._replay(each)

    def _replay(self, record: Record) -> None:
        replayed = self._replayed.setdefault(record.group, Replayed())
        try:
            replayed.take(record.kind, record.payload)
        except ValueError as error:
            file, position = file_name(number_of(record.lsn)), position_of(record.lsn)
            raise UnreadableRecord(file, position, str(error)) from error
        if replayed.is_gone:
            del self._replayed[record.group]
            self._lost.add(record.group)
        else:
            self._lost.discard(record.group)

    def start(
        self,
        wal: Wal,
        vhosts: Mapping[str, VirtualHost],
        sent: SentFile | None = None,
        pages: Path | None = None,
    ) -> None:
        """Fill the queues that there are, and declare those again that there were.

        Args:
            wal: Recovered.
            vhosts: Where they are.
            sent: Says what went out ahead of its record; None where nothing may.
            pages: Where page files are; None where all messages stay in memory.
        """
        self._wal = wal
        if sent is not None:
            self._take_marks(sent)
        self._core.on_barrier = self.commit_soon
        for group in [group for group, each in self._replayed.items() if not each.is_complete]:
            del self._replayed[group]
            self._lost.add(group)
        for group in self._lost:
            wal.low_water(group, wal.end_lsn)
        if pages is not None:
            self.paging.begin(pages, self._replayed)
        for queue in self._early:
            self._attach(queue)
        self._early.clear()
        for replayed in list(self._replayed.values()):
            self._declare(replayed.begin, vhosts)

    def _take_marks(self, sent: SentFile) -> None:
        for group, marks in sent.found.items():
            if (replayed := self._replayed.get(group)) is not None:
                for number, attempt in marks:
                    replayed.image.note_sent(number, attempt)
        self._marks = sent.marks(self._core)

    @staticmethod
    def _declare(begin: Begin, vhosts: Mapping[str, VirtualHost]) -> None:
        vhost = vhosts.get(begin.vhost)
        options = {key: value for key, value in begin.options.items() if value is not None}
        try:
            if vhost is None:
                raise ManagementError(NOT_FOUND, f"there is no virtual host {begin.vhost!r}")
            Declarations(vhost).declare(begin.address, options)
        except ManagementError as error:
            log.error(
                "cannot open queue %r: %s; its items stay on disk",
                begin.address,
                error,
            )

    # -- turns

    def note(self, queue: DurableQueue) -> None:
        """Take note that a queue has something to write."""
        self._dirty.append(queue)
        self.commit_soon()

    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made once it is known whether all that has happened so far is durable."""
        self.barriers.when_over(call)
        self.commit_soon()

    def write_together(self) -> None:
        """Have all that queues write in this turn be there after a crash, or none of it."""
        if self._wal is not None:
            self._is_together = True
            self.commit_soon()

    def commit_soon(self) -> None:
        """End the turn at the end of the loop's pass."""
        if not (self._is_due or self._is_closed):
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.commit)

    def commit(self) -> None:
        """End a turn: what the queues have written goes to the log, as far as that takes it.

        A turn goes on while a replicated queue waits for its appends: who is told that they are
        there ends it.
        """
        self._is_due = False
        if self._is_closed:
            return  # a pass that was due before
        if any(queue.is_busy for queue in self._dirty):
            return  # the turn goes on until there is something to wait for
        dirty, self._dirty = self._dirty, []
        before = len(self._waiting)
        failed = [queue for queue in dirty if not self._is_written(queue)]
        if self._is_together:
            self._is_together = False
            self._join(len(self._waiting) - before)
        if failed:
            self.barriers.break_turn()
        for each in {each.pager: each for each in dirty if each.pager is not None}.values():
            if each.pager is not None and each.pager.look():
                self.renew(each)
        for queue in list(self._pressed):
            self._go_on_or_not(queue)
        self._waiting.append(self.barriers.end_turn())
        for queue in failed:  # before anybody is told of what they did
            self._cut_off(queue)
        self._append_all()

    def _join(self, count: int) -> None:
        """Have the last records that wait count together, or not at all."""
        joined = [cast("_Append", self._waiting.pop()) for _ in range(count)]
        places = places_for(count)
        self._waiting += [each._replace(place=next(places)) for each in reversed(joined)]

    def _is_written(self, queue: DurableQueue) -> bool:
        """Write what a queue did; return whether that was possible: its fault is its own."""
        if queue.journal is None:
            return True
        try:
            changes = queue.journal.take()
            if queue.journal.is_failed and self._failure is None:
                return False
            for each in changes:
                queue.write(CHANGES, each)
        except Exception as error:
            log.exception("queue %r stops: cannot write its changes to the log", queue.address)
            queue.fail(error)
            return False
        return True

    def _cut_off(self, queue: DurableQueue) -> None:
        """Close the connections that would tell of what a queue did and is not written."""
        if self._core.held_connections:
            text = (
                f"{queue.address}: what was not confirmed by now is in doubt, as it is not written"
            )
            self._core.break_off(str(Condition.INTERNAL_ERROR), text)

    def _append_all(self) -> None:
        """Append what waits, until the log takes no more."""
        wal = self._wal
        if wal is None:
            return
        if self._failure is not None:
            self._waiting.clear()
            asyncio.get_running_loop().call_soon(self._break_off)
            return
        try:
            while self._waiting:
                first = self._waiting[0]
                if isinstance(first, Barrier):
                    self.barriers.placed(first, wal.end_lsn)
                else:
                    self._append(wal, first)
                self._waiting.popleft()
        except LogError as error:
            self._shut(error)
            self._ask_again()
        else:
            self._reopen()
        wal.flush()
        self.barriers.durable(wal.durable_lsn)

    @staticmethod
    def _append(wal: Wal, each: _Append) -> None:
        queue = each.queue
        lsn = wal.append(queue.group, each.kind, *each.place, each.payload)
        if each.kind == BEGIN:
            queue.begin_lsn = lsn
        elif each.kind == END:
            wal.low_water(queue.group, queue.begin_lsn)
        elif each.kind == GONE:
            wal.low_water(queue.group, wal.end_lsn)

    def durable(self, lsn: int) -> None:
        """Take note that the log is durable up to a place: what waited for that goes out."""
        self.barriers.durable(lsn)
        if self._failure is None and (self._is_shut or self._pressed):
            self.commit_soon()

    # -- checkpoints

    def press(self, group: int) -> None:
        """Have a queue that holds an old file of the log write its items anew."""
        queue = self._queues.get(group) or self._stranded(group)
        if queue is not None:
            self.renew(queue)

    def _stranded(self, group: int) -> QueueJournal | None:
        """Find a queue that is only on disk: else it would hold the log's oldest file for ever."""
        replayed = self._replayed.get(group)
        if replayed is None or self.low_space.is_low or group in self._strandeds():
            return None
        return StrandedQueue(self, group, replayed, self._core, self.paging.files_of(group))

    def _strandeds(self) -> dict[int, DurableQueue]:
        """Return those that are being written anew, by their group."""
        return {each.group: each for each in self._pressed if isinstance(each, StrandedQueue)}

    def renew(self, queue: DurableQueue) -> None:
        """Have a queue write its items anew, so that older records are not needed."""
        if queue.journal is not None and not queue.journal.is_failed:
            self._pressed[queue] = None
            self.commit_soon()

    def abandon(self, queue: DurableQueue) -> None:
        """Take note that a queue writes nothing here any more."""
        self._pressed.pop(queue, None)
        queue.checkpoint = None

    def _go_on_or_not(self, queue: DurableQueue) -> None:
        """Go on with a checkpoint; one that cannot be made is given up, and asked for again."""
        try:
            self._go_on(queue)
        except Exception:  # the turn goes on for the other queues
            log.exception("queue %r: cannot write a checkpoint of its items", queue.address)
            self.abandon(queue)
            if isinstance(queue, StrandedQueue):
                queue.store.close()

    def _go_on(self, queue: DurableQueue) -> None:
        """Write the next part of a checkpoint, unless what was written before it waits."""
        if self._is_shut or queue.has_backlog or self._is_log_behind:
            return  # whoever is answered ends a turn, and so comes here
        if queue.checkpoint is None:
            queue.checkpoint = Checkpoint(queue.store)
            if queue.pager is not None:
                queue.pager.account_begun()
            queue.write(BEGIN, queue.begin(queue.checkpoint))
        queue.write(PART, queue.checkpoint.next_part(PART_BYTES))
        if queue.checkpoint.is_finished:
            self.abandon(queue)
            queue.write(END, b"")
            if queue.pager is not None:
                self.barriers.when_over(queue.pager.account_ended)
        else:
            self.commit_soon()

    @property
    def _is_log_behind(self) -> bool:
        return self._wal is not None and self._wal.waiting_bytes > PARTS_WAITING_BYTES

    # -- no room, or no disk

    def full(self, is_full: bool) -> None:
        """Take note whether there is space on the disk."""
        if not is_full and self._is_shut:
            self.commit_soon()

    def failed(self, failure: LogFailed) -> None:
        """Take note that nothing more can be written until a new start."""
        self._failure = failure
        self.barriers.clear()
        self._set_open(is_open=False)
        for queue in self._queues.values():
            if queue.journal is not None:
                queue.journal.is_failed = True
                queue.store.reopen()
        self.commit_soon()

    def _break_off(self) -> None:
        if self._core.held_connections:
            self._core.break_off(
                str(DISK_FAILED), f"the container's disk has failed: {self._failure}"
            )

    def _shut(self, error: LogError) -> None:
        if self._is_shut:
            return
        log.warning("durable queues are paused (cannot write to the log): %s", error)
        self._is_shut = True
        self._set_open(is_open=False)
        self._wait_for_room()

    def _ask_again(self) -> None:
        """Have the log asked again a little later: it need not say that it takes something."""
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._asked_again)

    def _asked_again(self) -> None:
        self._retry = None
        if self._is_shut and self._failure is None:
            self._append_all()

    def _wait_for_room(self) -> None:
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(PATIENCE_S, self._lose_patience)

    def _lose_patience(self) -> None:
        if self._is_shut and self._failure is None:
            self._core.break_off(
                str(Condition.RESOURCE_LIMIT_EXCEEDED),
                "the container's disk is full: what was not confirmed by now is in doubt",
            )
            self._wait_for_room()

    def _reopen(self) -> None:
        if not self._is_shut:
            return
        self._is_shut = False
        if self._patience is not None:
            self._patience.cancel()
        log.warning("durable queues resume")
        self._set_open(is_open=True)
        for queue in self._queues.values():
            queue.store.reopen()
        self._core.flush()
        if self._pressed:
            self.commit_soon()

    def _set_open(self, *, is_open: bool) -> None:
        for queue in self._queues.values():
            if queue.journal is not None and queue.problem is None:
                queue.journal.is_open = is_open

    def close(self) -> None:
        """Write what is to be written."""
        if self._wal is not None and self._failure is None:
            self.commit()
        self._is_closed = True
        for timer in (self._patience, self._retry):
            if timer is not None:
                timer.cancel()
        self._core.on_barrier = None
        self.paging.close()

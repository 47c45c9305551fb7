"""A queue whose records are a stream: this container's part in it.

Theory of operation. One container *owns* the queue: its store has the items, and what it writes
down is appended to the stream, which every container with a replica reads and sums up. Whoever
leads the stream and can reach no owner takes over: it begins a new epoch of the stream, so that
nothing of an earlier owner can come behind what is there then, reads up to that place, and fills
its store with the sum. What was out at consumers then is in doubt, until they come back with their
tags.

An owner that leads no more stays what it is, as long as its appends come through. One whose replica
was moved elsewhere takes nothing more, and lets go when all that it took is written. One that
learns of a newer epoch, or cannot know what became of an append, closes the connections whose
output was held for it, forgets what it has, and follows again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.amqp.types import Symbol
from cogwork.container.journals.durable_queue import DurableQueue
from cogwork.container.journals.records import BEGIN, END, Replayed
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import CaughtUp, Origin, Snapshot
from cogwork.plugin.engine.errors import ConsensusError, Unavailable

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from cogwork.container.cluster.queue_replicas import QueueReplicas
    from cogwork.dataplane.addresses.partitions import PartitionedInlet
    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.engine.batch import Chunk
    from cogwork.plugin.engine.contract import Appended
    from cogwork.replication.engine import RaftEngine, RaftSubscription

__all__ = ("OWNER_LOST", "ReplicatedQueue")

OWNER_LOST = Symbol("cogwork:owner-lost")
"""The condition of connections that were held for what another owner may not have."""

MESSAGE_BYTES_MAX = 3 << 20
"""A record has up to 4 MiB and one message more, and has to fit a batch of the stream."""

CHECKPOINT_BYTES = 32 << 20
"""So much is written, and twice what the queue has, before its items are written anew."""

UNDER_WAY_MAX = 2
"""Appends at a time: each costs every container some tenths of a millisecond, whatever is in it."""

LATE_S = 1.0
"""An append that takes longer is a reason to take no more for now."""

RETIRE_S = 1.0
"""So long an owner whose replica has gone waits for what it took to be written and told."""

PATIENCE_S = 5.0
"""So long connections are held for a majority that does not answer; then they are closed."""

SENT_BYTES_MAX = 16 << 20
"""What the engine is given at a time: it refuses what it cannot hold, and all has to be written."""

PAUSE_S, PAUSE_LONGEST_S = 0.1, 5.0

log = logging.getLogger("cogwork")


@dataclass(frozen=True, slots=True)
class _Claim:
    """An epoch that was begun here, and the offset after all that came before it."""

    epoch: int
    end: int


class ReplicatedQueue(DurableQueue):
    """One queue here.

    Attributes:
        epoch: In which this container owns it; None while it does not.
        home: None: its owner changes.
    """

    home: str | None = None

    def __init__(
        self,
        host: QueueReplicas,
        name: tuple[str, str],
        options: Mapping[str, object],
        store: Store,
        inlet: PartitionedInlet,
    ) -> None:
        """Follow nothing yet; `start` comes next.

        Args:
            host: The container's.
            name: The virtual host's, and the address.
            options: By which it is declared.
            store: Empty.
            inlet: Without an owner.
        """
        super().__init__(*name, options, store)
        self.epoch: int | None = None
        self._host = host
        self._inlet = inlet
        self._engine: RaftEngine | None = None
        self._subscription: RaftSubscription | None = None
        self._replayed = Replayed()
        self._next = 0
        self._is_current = False
        self._is_claiming = False
        self._claim: _Claim | None = None
        self._released = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None
        self._retiring_s: float | None = None
        self._written_bytes = 0
        self._sent_bytes = 0
        self._unsent: deque[tuple[bytes, Future[Appended]]] = deque()
        self._begin_offset: int | None = None
        self._is_broken = False
        self._late: dict[Future[Appended], float] = {}

    @property
    def owner(self) -> str | None:
        """The container that owns the queue, as far as it is known here."""
        return self._host.owner_of(self)

    # -- life

    def start(self) -> None:
        """Begin to follow."""
        self._spawn(self._run())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Let the queue go; it stays with the others."""
        for task in list(self._tasks):
            task.cancel()
        if self._following is not None:
            self._following.cancel()
        self.disown("the queue is closed here")
        self._host.forget(self)
        engine, self._engine = self._engine, None
        if engine is not None:
            self._host.release(engine)

    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made once it is known whether all that has happened so far is durable."""
        self._host.journals.when_durable(call)

    def delete(self) -> None:
        """Leave its records: every container has them given up by `QueueReplicas.withdraw`."""

    async def _run(self) -> None:
        self._engine = await self._opened()
        self.attend(self._host.now_s(), has_replica=self._host.has_replica(self))

    def attend(self, now_s: float, *, has_replica: bool) -> None:
        """Have its records summed up where a replica is here, and owned nowhere else."""
        if self._engine is None:
            return
        if has_replica:
            self._retiring_s = None
            if self._following is None:
                work = self._keep(self._engine)
                self._following = asyncio.get_running_loop().create_task(work)
        elif self._following is not None and self._has_retired(now_s):
            self.disown("there is no replica here any more")
            self._following.cancel()
            self._following = None
            self._is_current = False

    def _has_retired(self, now_s: float) -> bool:
        """Take nothing more; tell whether what it took is written and told, or lasts too long."""
        if self.epoch is None:
            return True
        if self._retiring_s is None:
            self._retiring_s = now_s
            return False
        is_under_way = bool(self._late) or self._host.core.held_connections > 0
        return not is_under_way or now_s - self._retiring_s > RETIRE_S

    async def _keep(self, engine: RaftEngine) -> None:
        pause_s = PAUSE_S
        while True:
            try:
                await self._follow(engine)
                pause_s = PAUSE_S
            except Exception as error:  # whatever it is, nobody else follows again
                self._report(f"cannot follow its log: {error}")
                is_passing = isinstance(error, Unavailable)
                pause_s = PAUSE_S if is_passing else min(pause_s * 2, PAUSE_LONGEST_S)
            await asyncio.sleep(pause_s)

    async def _opened(self) -> RaftEngine | None:
        pause_s = PAUSE_S
        while True:
            try:
                engine = await self._host.open_stream(self)
            except ValueError as error:  # it is not to be had as it is declared
                self._report(str(error))
                return None
            except (CogworkError, OSError) as error:
                self._report(str(error))
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_LONGEST_S)
            else:
                self.problem = None
                return engine

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            log.warning("queue %r: %s", self.address, problem)

    # -- who holds it

    def held(self) -> Mapping[str, object]:
        """Return who holds it, and who is to, as far as it is known here."""
        return self._host.held(self, self._engine)

    async def relocate(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Declare that others are to hold it; return before they do."""
        await self._host.relocate(self, voters, learners)

    # -- following

    async def _follow(self, engine: RaftEngine) -> None:
        """Sum up the records; owns the queue from when a claim stands until it falls."""
        self._replayed, self._next = Replayed(), 0
        self._is_current = self._is_claiming = False
        self._claim = None
        subscription = self._subscription = engine.subscribe(Origin.FIRST)
        async for each in subscription:
            if isinstance(each, CaughtUp):
                self._next = max(self._next, each.next)
                self._is_current = True
                self.problem = None
            elif not isinstance(each, Snapshot):
                self._apply(each)
            if self._claim is not None and self._next >= self._claim.end:
                break
        await subscription.aclose()
        claim = self._claim
        if claim is None:
            raise Unavailable("the stream has ended")
        try:
            self._own(claim.epoch)
        except Exception as error:  # whatever it is, what is half there is nobody's
            self.disown(f"cannot restore its items: {error!r}")
            raise
        await self._released.wait()

    def _apply(self, chunk: Chunk) -> None:
        for record in chunk.batch.records():
            self._replayed.take(record[0], record[1:])
        self._next = chunk.next_offset

    # -- taking over

    def claim(self) -> None:
        """Take the queue over, where nobody else has it and this container could."""
        if self._is_current and not self._is_claiming and self.epoch is None:
            self._is_claiming = True
            self._spawn(self._fence())

    async def _fence(self) -> None:
        engine = self._engine
        try:
            if engine is None:
                return
            epoch = await engine.fence()
            bounds = await engine.bounds()
            self._claim = _Claim(epoch, bounds.next)
            if self._subscription is not None and self._next >= bounds.next:
                await self._subscription.aclose()  # it may have begun to follow again meanwhile
        except ConsensusError as error:
            log.info("queue %r: cannot take it over: %s", self.address, error)
        except Exception as error:  # whatever it is, nobody else claims it for this container
            self._report(f"cannot take it over: {error!r}")
        finally:
            self._is_claiming = self._claim is not None

    def _own(self, epoch: int) -> None:
        replayed = self._replayed if self._replayed.is_complete else None
        self._replayed = Replayed()
        self.epoch = epoch
        self.problem = None
        self._released = asyncio.Event()
        self._is_broken = False
        self._written_bytes = 0
        self.store.clear()  # of what was sent settled, and came here when nobody owned it
        journal = self.fill(replayed, self._host.core, partial(self._host.journals.note, self))
        journal.message_bytes_max = MESSAGE_BYTES_MAX
        if replayed is None:
            self.write(BEGIN, self.begin())
            self.write(END, b"")
        log.info("queue %r: this container owns it, with %d items", self.address, self.store.depth)
        self._inlet.set_owners([self.store])
        self._host.changed(self)
        self.store.reopen()
        self._host.core.flush()

    def disown(self, why: str) -> None:
        """Forget the queue's items here: another container has them, or will."""
        if self.epoch is None:
            return
        log.info("queue %r: this container no longer owns it: %s", self.address, why)
        self.epoch = None
        self._is_current = False
        self._late = {}
        while self._unsent:
            self._unsent.popleft()[1].cancel()
        if self._host.core.held_connections:  # for what is under way, or was not even written
            self._host.core.break_off(
                str(OWNER_LOST),
                f"{self.address} is elsewhere now: what was not confirmed is in doubt",
            )
        self._host.journals.barriers.break_turn()  # what is noted of it is never written
        self._host.journals.abandon(self)
        self._host.journals.commit_soon()
        self.journal = None
        self._inlet.set_owners([None])
        self._host.cut_off(self)
        self.store.clear()
        self._released.set()
        self._host.changed(self)

    # -- writing

    @property
    def is_busy(self) -> bool:
        """Whether appends are under way: what comes meanwhile makes one of the next."""
        return len(self._late) >= UNDER_WAY_MAX

    @property
    def has_backlog(self) -> bool:
        """Whether the engine has no room for what was written last."""
        return bool(self._unsent)

    def write(self, kind: int, payload: bytes) -> None:
        """Have a record appended to the stream; the present turn waits for that."""
        if self.epoch is None or self._engine is None or self._is_broken:
            self._host.journals.barriers.break_turn()
            return
        self._written_bytes += len(payload)
        record = bytes((kind,)) + payload
        answer: Future[Appended]
        if self._unsent or self._sent_bytes + len(record) > SENT_BYTES_MAX:
            answer = asyncio.get_running_loop().create_future()
            self._unsent.append((record, answer))
        else:
            answer = self._append(record)
        self._late[answer] = self._host.now_s()
        self._host.wake(self)
        answer.add_done_callback(partial(self._answered, kind, self.epoch))
        self._host.journals.barriers.wait_for(answer)
        if kind in {BEGIN, END}:  # what an account takes itself is no reason for the next one
            self._written_bytes = 0

    def _append(self, record: bytes) -> Future[Appended]:
        assert self._engine is not None
        assert self.epoch is not None
        answer = self._engine.append(Batch.of([record]), self.epoch)
        assert isinstance(answer, asyncio.Future)
        # Nothing may come behind what is missing, and what waits for it is cut off before anybody
        # can take the turn for over.
        self._is_broken |= answer.done() and answer.exception() is not None
        self._sent_bytes += len(record)
        answer.add_done_callback(partial(self._send_more, len(record), self.epoch))
        return answer

    def _send_more(self, size_bytes: int, epoch: int, answer: Future[Appended]) -> None:
        """Have the engine append what it had no room for, unless something before it failed."""
        self._sent_bytes -= size_bytes
        has_failed = answer.cancelled() or answer.exception() is not None
        if has_failed and epoch == self.epoch:
            return
        while self._unsent and not self._is_broken:
            record, told = self._unsent[0]
            if self._sent_bytes and self._sent_bytes + len(record) > SENT_BYTES_MAX:
                return
            self._unsent.popleft()
            self._late[told] = self._host.now_s()  # only from now on somebody can be late with it
            self._append(record).add_done_callback(partial(_pass_on, told))

    def fail(self, error: Exception) -> None:
        """Let go of the queue: whoever owns it next goes on from what is written."""
        self.disown(f"cannot write its changes: {error!r}")

    def _answered(self, kind: int, epoch: int, answer: Future[Appended]) -> None:
        if epoch != self.epoch:
            return
        if answer.cancelled() or answer.exception() is not None:
            self.disown(str(answer.exception() if not answer.cancelled() else "cancelled"))
            return
        del self._late[answer]
        self._host.journals.commit_soon()
        offset = answer.result().first_offset
        if kind == BEGIN:
            self._begin_offset = offset
        elif kind == END and self._begin_offset:
            self._spawn(self._trim(self._begin_offset))

    async def _trim(self, before: int) -> None:
        if self._engine is not None:
            with suppress(ConsensusError):
                await self._engine.trim(before)

    # -- time

    def wake(self) -> None:
        """Have it looked at soon: it may have another owner."""
        self._host.wake(self)

    @property
    def goes_by_time(self) -> bool:
        """Whether an owner's appends may come late, or it is on its way out: it needs each tick."""
        return self.epoch is not None and (bool(self._late) or self._retiring_s is not None)

    def tick(self, now_s: float) -> None:
        """Take no more while appends are late; write its items anew when it is time."""
        journal = self.journal
        if self.epoch is None or journal is None:
            return
        since_s = next(iter(self._late.values()), now_s)
        is_open = now_s - since_s < LATE_S and not self._host.is_barred
        is_open = is_open and self._retiring_s is None and not self._unsent
        if is_open != journal.is_open:
            journal.is_open = is_open
            if is_open:
                self.store.reopen()
        if now_s - since_s > PATIENCE_S:
            self.disown("a majority of its replicas does not answer")
        elif self._is_long():
            self._host.journals.renew(self)
            self._written_bytes = 0

    def _is_long(self) -> bool:
        """Return whether what is written is much more than what there is: to count that is work."""
        written_bytes = self._written_bytes
        return written_bytes > CHECKPOINT_BYTES and written_bytes > 2 * self.store.counts()["bytes"]


def _pass_on(told: Future[Appended], answer: Future[Appended]) -> None:
    """Tell who waits for an append of its end."""
    if told.done():
        return
    if answer.cancelled():
        told.cancel()
    elif (error := answer.exception()) is not None:
        told.set_exception(error)
    else:
        told.set_result(answer.result())

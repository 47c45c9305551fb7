"""Appends: from what came in to what its senders are told.

Theory of operation. The messages of one link stand in one line, in their order, a record batch at a
time; the next record batch is handed to the engine before the last one is answered. Where the
engine cannot take a record batch now, its line stops, waits until all that is under way in it has
been answered, and tries again in order, with growing pauses. What failed and was overtaken by a
later record batch of the same link is not tried again, for that would put it out of order: its
sender is told. The same holds where the engine does not come back in time, and where it is not
known whether records without a producer were appended. An engine that waits for its server or its
leader by itself has had its time when it gives up, and is not asked once more. One that has lost
the stream is not either: who sends to it is told that at once. One that first refuses and then says
nothing has no more time than either: what it still has then is given back as what may have been
appended.

A container that stops gives back what waits before it closes its connections: whoever sent that
would be left in doubt of what was certainly not appended. So does an engine with what it has and
never sent anywhere.

The engine's answer becomes an outcome. Appended is accepted. What will never be taken is rejected,
with the reason. What was certainly not appended is released, what may have been is modified with
delivery-failed (AMQP 1.0 §3.4.5): to send that again may make two of one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, CogworkError, Condition, ProtocolError
from cogwork.amqp.extensions import OUT_OF_SEQUENCE, STREAM_TRUNCATED
from cogwork.amqp.outcomes import Modified, Rejected
from cogwork.amqp.types import Symbol
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import PromptEngine, ReleasingEngine, Snapshot
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    Busy,
    ConsensusError,
    InvalidAppend,
    InvalidSnapshot,
    NotLeader,
    OutOfSequence,
    SequenceReused,
    StreamLost,
    Truncated,
    Unavailable,
    Unknown,
    reason_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cogwork.dataplane.stream.intake import RecordBatch
    from cogwork.plugin.engine.contract import Appended, Engine

__all__ = ("Publishing",)

ACCEPTED, REJECTED, RELEASED, MODIFIED = 0x24, 0x25, 0x26, 0x27

PAUSE_FIRST_S, PAUSE_LONGEST_S = 0.02, 0.5

PATIENCE_S = 9.0
"""How long an engine is tried that cannot take records: longer than a change of leaders, and not
again where it has tried for ten seconds by itself."""

DEADLINE_S = 10.0
"""So long after it came, what was not taken at once is given back, whatever the engine does."""

PASSING = (Busy, Unavailable, NotLeader)
"""Nothing was appended, and it may be later."""

NOT_OPEN = Unavailable("the stream is being opened")

IN_DOUBT = encode(Modified(delivery_failed=True).to_described())


class _NeverOpen(CogworkError):
    """The engine does not take the stream as it is declared."""


CONDITIONS: dict[type[CogworkError], Symbol] = {
    SequenceReused: Symbol("cogwork:sequence-reused"),
    OutOfSequence: OUT_OF_SEQUENCE,
    InvalidAppend: Condition.NOT_ALLOWED,
    BeyondEnd: Condition.INVALID_FIELD,
    InvalidSnapshot: Condition.LINK_MESSAGE_SIZE_EXCEEDED,
    StreamLost: Condition.RESOURCE_DELETED,
    Truncated: STREAM_TRUNCATED,
    _NeverOpen: Condition.PRECONDITION_FAILED,
}


@dataclass(slots=True, eq=False)
class _Job:
    """A record batch in its line."""

    record_batch: RecordBatch
    item: Batch | Snapshot
    since_s: float
    is_under_way: bool = False
    failure: BaseException | None = None
    is_overtaken: bool = False
    is_in_doubt: bool = False
    is_late: bool = False
    is_given_back: bool = False

    def is_over(self, now_s: float) -> bool:
        """Return whether it was not taken at once, and has had its time."""
        return self.is_late and now_s - self.since_s >= DEADLINE_S


@dataclass(slots=True, eq=False)
class _Line:
    """What one link has sent, in order."""

    jobs: deque[_Job] = field(default_factory=deque)
    is_stopped: bool = False
    is_retry_due: bool = False
    is_watched: bool = False
    pause_s: float = PAUSE_FIRST_S
    since_s: float | None = None
    is_broken: bool = False

    def is_over(self, now_s: float) -> bool:
        """Return whether the first one that failed has been tried for long enough."""
        return self.since_s is not None and now_s - self.since_s >= PATIENCE_S


class Publishing:
    """Appends what an intake hands over. Owned by a stream's node.

    Attributes:
        appended: Counts messages that were appended.
        rejected: Those that were rejected.
        returned: Those that were released, or are in doubt.
    """

    def __init__(self, flush: Callable[[], None]) -> None:
        """Start with no engine yet.

        Args:
            flush: Has what was written sent soon.
        """
        self._flush = flush
        self._engine: Engine | None = None
        self._prompt: PromptEngine | None = None
        self._refusal: CogworkError | None = None
        self._lines: dict[tuple[int, int], _Line] = {}
        self._gives_back = False
        self.appended = 0
        self.rejected = 0
        self.returned = 0

    def open(self, engine: Engine) -> None:
        """Append to `engine` from now on; what came before is tried like what it cannot take."""
        self._engine = engine
        self._prompt = engine if isinstance(engine, PromptEngine) else None

    def refuse(self, why: str) -> None:
        """Reject what has come, and what comes: the stream will never be open."""
        self._refusal = _NeverOpen(why)
        lines, self._lines = list(self._lines.values()), {}
        for job in [each for line in lines for each in line.jobs]:
            self._reject(job.record_batch, self._refusal)

    @property
    def refuses(self) -> bool:
        """Whether it does that."""
        return self._refusal is not None

    def give_back(self) -> None:
        """Return what waits for the engine, and what comes from now on: the container stops."""
        self._gives_back = True
        for key, line in list(self._lines.items()):
            self._return_all(line, [each for each in line.jobs if not each.is_under_way])
            if not line.jobs:
                del self._lines[key]
        self._release_unsent()

    def _release_unsent(self) -> None:
        """Have the engine answer what it has never sent, where it can tell."""
        if isinstance(self._engine, ReleasingEngine):
            try:
                self._engine.release_unsent("the container is stopping")
            except Exception as error:  # a plug-in's, too: the container stops all the same
                context = {"message": f"a fault of {self._engine!r}", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    def close(self) -> None:
        """Give back what has not been answered; what comes of it is of no interest any more."""
        lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            for job in line.jobs:
                self._return(job)
        self._engine = self._prompt = None

    def take(self, record_batches: Sequence[RecordBatch]) -> None:
        """Append record batches, each in its line."""
        now_s = asyncio.get_running_loop().time()
        if self._refusal is not None:
            for record_batch in record_batches:
                self._reject(record_batch, self._refusal)
            return
        if self._gives_back:
            for record_batch in record_batches:
                self._release(record_batch)
            return
        for record_batch in record_batches:
            try:
                job = _Job(record_batch, self._item_of(record_batch), now_s)
            except _NoSnapshot as problem:
                self._reject(record_batch, problem)
                continue
            key = (record_batch.source_index, record_batch.source_generation)
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = _Line()
            line.jobs.append(job)
            if not line.is_stopped:
                self._start(key, line, job)

    @staticmethod
    def _item_of(record_batch: RecordBatch) -> Batch | Snapshot:
        if record_batch.is_snapshot:
            try:
                data = Message.decode(record_batch.payload).body
            except ProtocolError as error:
                raise _NoSnapshot(f"{_NoSnapshot.rule}: {error}") from error
            if not isinstance(data, bytes):
                raise _NoSnapshot(_NoSnapshot.rule)
            return Snapshot(record_batch.snapshot, data)
        return Batch(
            record_batch.payload, record_batch.count, record_batch.producer, record_batch.sequence
        )

    def _start(self, key: tuple[int, int], line: _Line, job: _Job) -> None:
        job.is_under_way = True
        job.failure = None
        if self._engine is None:
            self._answered(key, line, job, NOT_OPEN)
            return
        if self._prompt is not None and isinstance(job.item, Batch):
            self._prompt.append_then(job.item, partial(self._told, key, line, job))
            return
        future: asyncio.Future[object]
        try:
            future = asyncio.ensure_future(self._work(job.item))
        except Exception as failure:  # a plug-in's, too: its sender is told
            future = asyncio.get_running_loop().create_future()
            future.set_exception(failure)
        future.add_done_callback(partial(self._done, key, line, job))

    def _work(self, item: Batch | Snapshot) -> Awaitable[object]:
        assert self._engine is not None
        if isinstance(item, Snapshot):
            return self._engine.save_snapshot(item)
        return self._engine.append(item)

    # -- answers

    def _told(
        self,
        key: tuple[int, int],
        line: _Line,
        job: _Job,
        result: Appended | int | ConsensusError,
    ) -> None:
        """Take an answer that comes in a turn of the engine, which ends with a flush."""
        failure = result if isinstance(result, ConsensusError) else None
        self._answered(key, line, job, failure)
        if failure is not None:  # which may come from elsewhere
            self._flush()

    def _done(
        self, key: tuple[int, int], line: _Line, job: _Job, future: asyncio.Future[object]
    ) -> None:
        failure = Unknown("it was cancelled") if future.cancelled() else future.exception()
        self._answered(key, line, job, failure)
        self._flush()

    def _answered(
        self, key: tuple[int, int], line: _Line, job: _Job, failure: BaseException | None
    ) -> None:
        job.is_under_way = False
        job.is_in_doubt |= isinstance(failure, Unknown)
        if job.is_given_back or self._lines.get(key) is not line:
            return
        if failure is None:
            self._accept(line, job)
        elif self._gives_back and self._may_pass(line, job, failure):
            line.jobs.remove(job)
            self._return(job)
        elif self._may_pass(line, job, failure):
            job.failure = failure
            line.is_stopped = True
            if line.since_s is None or job.since_s < line.since_s:
                line.since_s = job.since_s
        else:
            line.jobs.remove(job)
            self._refuse(job, failure)
        if line.is_stopped:
            self._look_again(key, line)
        elif not line.jobs:
            del self._lines[key]

    def _accept(self, line: _Line, job: _Job) -> None:
        line.since_s, line.pause_s = None, PAUSE_FIRST_S
        if line.jobs[0] is job:
            line.jobs.popleft()
        else:
            line.jobs.remove(job)
            for each in line.jobs:
                each.is_overtaken |= each.failure is not None and not each.record_batch.producer
        self.appended += job.record_batch.count
        job.record_batch.settle(ACCEPTED)

    def _may_pass(self, line: _Line, job: _Job, failure: BaseException) -> bool:
        """Return whether a failure may be over when it is tried again."""
        if isinstance(failure, StreamLost):
            return False
        if isinstance(failure, PASSING):
            return True
        if isinstance(failure, Unknown):
            return bool(job.record_batch.producer) or job.record_batch.is_snapshot
        if isinstance(failure, OutOfSequence):
            # What comes before it has failed, too, and is tried again first, or was given back.
            has_failed = (each is not job and each.failure is not None for each in line.jobs)
            return line.is_broken or any(has_failed)
        return False

    def _refuse(self, job: _Job, failure: BaseException) -> None:
        if isinstance(failure, Unknown):
            self._return(job)
        else:
            self._reject(job.record_batch, failure)

    def _reject(self, record_batch: RecordBatch, failure: BaseException) -> None:
        known = (each for each in type(failure).__mro__ if each in CONDITIONS)
        condition = CONDITIONS.get(next(known, CogworkError), Condition.INTERNAL_ERROR)
        text = str(failure) if isinstance(failure, CogworkError) else repr(failure)
        if isinstance(failure, ConsensusError):
            text = reason_of(failure)
        error = AmqpError(condition=condition, description=text[:500])
        self.rejected += record_batch.count
        record_batch.settle(REJECTED, encode(Rejected(error=error).to_described()))

    def _return(self, job: _Job) -> None:
        job.is_given_back = True
        if job.is_under_way or job.is_in_doubt:
            self.returned += job.record_batch.count
            job.record_batch.settle(MODIFIED, IN_DOUBT)
        else:
            self._release(job.record_batch)

    def _release(self, record_batch: RecordBatch) -> None:
        self.returned += record_batch.count
        record_batch.settle(RELEASED)

    # -- trying again

    def _look_again(self, key: tuple[int, int], line: _Line) -> None:
        """Go on with a line that was stopped, once nothing of it is under way."""
        loop = asyncio.get_running_loop()
        if line.is_over(loop.time()):
            line.is_broken = True
            self._return_all(line, [each for each in line.jobs if not each.is_under_way])
        if line.is_retry_due or any(job.is_under_way for job in line.jobs):
            return
        self._return_all(line, [each for each in line.jobs if each.is_overtaken])
        if not line.jobs:
            line.is_stopped = False
            self._lines.pop(key, None)
            return
        line.is_retry_due = True
        loop.call_later(line.pause_s, self._go_on, key, line)
        line.pause_s = min(line.pause_s * 2, PAUSE_LONGEST_S)

    def _return_all(self, line: _Line, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            line.jobs.remove(job)
            self._return(job)

    def _go_on(self, key: tuple[int, int], line: _Line) -> None:
        if self._lines.get(key) is not line:
            return
        line.is_stopped = line.is_retry_due = False
        for job in list(line.jobs):
            job.is_late = True
            self._watch(key, line, job)
            self._start(key, line, job)
            # An engine may refuse at once: what comes behind goes then when that is tried again.
            if line.is_stopped or self._lines.get(key) is not line:
                return

    def _watch(self, key: tuple[int, int], line: _Line, job: _Job) -> None:
        """Have a line looked at when the time of one that was not taken at once is over."""
        if not line.is_watched:
            line.is_watched = True
            loop = asyncio.get_running_loop()
            loop.call_at(job.since_s + DEADLINE_S, self._look_at_time, key, line)

    def _look_at_time(self, key: tuple[int, int], line: _Line) -> None:
        """Give back what the engine has had for too long; it may yet be appended."""
        line.is_watched = False
        if self._lines.get(key) is not line:
            return
        now_s = asyncio.get_running_loop().time()
        if over := [each for each in line.jobs if each.is_over(now_s)]:
            line.is_broken = True
            self._return_all(line, over)
            self._flush()
        if late := [each for each in line.jobs if each.is_late]:
            self._watch(key, line, late[0])
        if line.is_stopped:
            self._look_again(key, line)
        elif not line.jobs:
            del self._lines[key]

    @property
    def stopped(self) -> int:
        """Counts the links whose messages wait for the engine."""
        return sum(line.is_stopped for line in self._lines.values())


class _NoSnapshot(InvalidAppend):
    """A message that says it is a snapshot, and is none."""

    rule = "the body of a snapshot is binary, in one data section"

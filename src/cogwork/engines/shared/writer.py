"""Writes a stream: what many append goes to the server in one entry after the other.

Theory of operation. One entry is under way at a time; what is appended meanwhile goes together into
the next, so that a slow server gets large entries and not many. The writer knows the stream's state
behind the last entry, and says which one that is; where another writer was faster the server (or
the rule of the chain) refuses the entry, the writer reads what it has missed, decides again, and
tries again. What it sent before it lost the server it recognises by the entry's id. A server that
was away is asked something that changes nothing before it is sent an entry: what was never sent is
not in doubt.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from cogwork.engines.shared.boarding import Boarding, Flight, Wanted
from cogwork.engines.shared.chain import Forked, Gap, damaged
from cogwork.engines.shared.entry import (
    BATCH_OVERHEAD_BYTES,
    ENTRY_OVERHEAD_BYTES,
    PART_OVERHEAD_BYTES,
    Kind,
    Part,
    pack_batches,
)
from cogwork.engines.shared.loading import catch_up, load
from cogwork.engines.shared.memory import has
from cogwork.engines.shared.server import (
    Gone,
    Moved,
    ServerDown,
    ServerRefused,
    TooLarge,
    refusal,
)
from cogwork.plugin.engine.batch import BATCH_BYTES_MAX, check
from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import (
    Busy,
    ConsensusError,
    InvalidAppend,
    Malformed,
    Unavailable,
    Unknown,
)
from cogwork.plugin.engine.producers import Repeated

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.engines.shared.clock import Clock
    from cogwork.engines.shared.entry import Entry
    from cogwork.engines.shared.head import Head
    from cogwork.engines.shared.search import Search
    from cogwork.engines.shared.server import ServerLog
    from cogwork.plugin.engine.batch import Batch

__all__ = ("Writer",)

FLIGHT_BYTES = 512 << 10
"""No more batches are put into one entry than that; a single batch may be larger."""

PENDING_BYTES_MAX = 32 << 20
"""What may wait to be written; a batch has at most half of it."""

PENDING_OVERHEAD_BYTES = 512
BOARDED_MAX = 8192
CHECKPOINT_BYTES = 8 << 20
"""So much is written between checkpoints, or more where they are large."""

BACK_OFF_FIRST_S, BACK_OFF_MAX_S = 0.02, 1.0

REFUSAL_S = 2.0
"""So long a refusal is told of: who is refused tries again sooner than that."""

SILENCE = "the server does not answer"


class Writer:
    """Appends to one stream.

    Args:
        log: Where to.
        search: Finds things in it.
        clock: What time it is, and ids at random.
        timeout_s: After so long an append is answered, whatever the server does.
    """

    def __init__(self, log: ServerLog, search: Search, clock: Clock, timeout_s: float) -> None:
        self._log = log
        self._search = search
        self._clock = clock
        self._timeout_s = timeout_s
        self._head: Head | None = None
        self._queue: deque[Wanted] = deque()
        self._queued_bytes = 0
        self._flights: dict[bytes, Flight] = {}
        self._task: asyncio.Task[None] | None = None
        self._checkpoint: asyncio.Task[Head] | None = None
        self._checkpoint_bytes = 0
        self._back_off_s = BACK_OFF_FIRST_S
        self._outage: str | None = None
        self._is_suspect = False
        self._refusal = ""
        self._refused_s = 0.0
        self._end_reason = ""
        self._lock = asyncio.Lock()

    @property
    def batch_bytes_max(self) -> int:
        """The largest payload of a batch."""
        room = self._log.entry_bytes_max - ENTRY_OVERHEAD_BYTES - BATCH_OVERHEAD_BYTES
        return min(room, BATCH_BYTES_MAX)

    @property
    def outage(self) -> str | None:
        """Why the server has not taken what waits; None where nothing waits, or it will yet."""
        return self._outage if self._queue else None

    @property
    def refusal(self) -> str | None:
        """What the server has just refused to take, and why; None where it has not lately."""
        passed_s = asyncio.get_running_loop().time() - self._refused_s
        return self._refusal if self._refusal and passed_s < REFUSAL_S else None

    def suspect(self) -> None:
        """Take note that the server has not answered somebody else."""
        self._is_suspect = True

    def append(self, batch: Batch, epoch: int | None) -> asyncio.Future[Appended]:
        """Append a batch."""
        answer: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        size_bytes = len(batch.payload) + BATCH_OVERHEAD_BYTES
        try:
            check(batch, self.batch_bytes_max)
            if self._queued_bytes + size_bytes + PENDING_OVERHEAD_BYTES > PENDING_BYTES_MAX:
                raise Busy(f"{self._queued_bytes} octets wait to be written")
            self._put(
                Wanted(
                    Kind.RECORDS, answer, self._deadline_s(), batch, epoch, size_bytes=size_bytes
                )
            )
        except ConsensusError as error:
            answer.set_exception(error)
        return answer

    async def fence(self) -> int:
        """Begin a new epoch and return it."""
        return (await self._write(Kind.FENCE, lambda _: b"")).epoch

    async def checkpoint(self) -> Head:
        """Write the state down, so that older entries are not needed to know it."""
        pieces: list[bytes] = []

        def first(head: Head) -> bytes:
            # What the parts say is the state before the first of them.
            pieces[:] = self._cut(head.state())
            return Part(0, 0, len(pieces), pieces[0]).to_bytes()

        await self._write_parts(Kind.CHECKPOINT, first, lambda: pieces)
        self._checkpoint_bytes = sum(map(len, pieces))
        return await self.refreshed()

    async def snapshot(self, data: bytes) -> None:
        """Keep an application's snapshot."""
        pieces = self._cut(data)
        body = Part(0, 0, len(pieces), pieces[0]).to_bytes()
        await self._write_parts(Kind.SNAPSHOT, lambda _: body, lambda: pieces)

    async def refreshed(self) -> Head:
        """Return the newest state."""
        async with self._lock:
            return await self._refresh()

    def release_unsent(self, reason: str) -> None:
        """Give up what waits and cannot be in the log."""
        for wanted in [each for each in self._queue if not each.is_sent]:
            self._give_up(wanted, reason)

    async def close(self, reason: str) -> None:
        """End it; what waits is told why."""
        self._end_reason = reason
        tasks = [each for each in (self._task, self._checkpoint) if each is not None]
        for task in tasks:
            task.cancel()
        # A checkpoint may have failed long ago, at whatever: that is no reason to stay open.
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._queue:
            self._give_up(self._queue[0], reason)

    async def _refresh(self) -> Head:
        if self._head is not None:
            _, last = await self._log.ends()
            await self._catch_up(last)
        if self._head is None:
            self._head = await load(self._log, self._search)
        return self._head

    def _deadline_s(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s

    def _cut(self, data: bytes) -> list[bytes]:
        size_bytes = min(self._log.entry_bytes_max, FLIGHT_BYTES) - PART_OVERHEAD_BYTES
        return [data[i : i + size_bytes] for i in range(0, len(data), size_bytes)] or [b""]

    async def _write(self, kind: Kind, body: Callable[[Head], bytes]) -> Appended:
        answer: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._put(Wanted(kind, answer, self._deadline_s(), body=body))
        return await answer

    async def _write_parts(
        self, kind: Kind, first: Callable[[Head], bytes], pieces: Callable[[], list[bytes]]
    ) -> None:
        """Write parts one after the other; each but the first says where that one is."""
        place = (await self._write(kind, first)).first_offset or 0
        rest = pieces()
        for index in range(1, len(rest)):
            body = Part(place, index, len(rest), rest[index]).to_bytes()
            await self._write(kind, partial(_as_it_is, body))

    def _put(self, wanted: Wanted) -> None:
        if self._end_reason:
            raise Unavailable(self._end_reason)
        self._queue.append(wanted)
        self._queued_bytes += wanted.size_bytes + PENDING_OVERHEAD_BYTES
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def _pop(self, wanted: Wanted) -> None:
        """Take one from the queue, where it is the first or nearly so."""
        self._queue.remove(wanted)
        self._queued_bytes -= wanted.size_bytes + PENDING_OVERHEAD_BYTES

    async def _run(self) -> None:
        while self._queue:
            try:
                async with asyncio.timeout_at(self._queue[0].deadline_s), self._lock:
                    await self._step()
                self._back_off_s = BACK_OFF_FIRST_S
                self._outage, self._is_suspect, self._refusal = None, False, ""
            except (ServerDown, TimeoutError) as error:
                self._outage, self._is_suspect = str(error) or SILENCE, True
                await self._wait_for_server(self._outage)
            except Exception as error:  # whatever it is, somebody waits for an answer
                self._refuse(error)

    async def _wait_for_server(self, reason: str) -> None:
        """Give up what has waited for too long, and let some time pass."""
        now_s = asyncio.get_running_loop().time()
        first = self._queue[0] if self._queue else None
        if first is not None and first.deadline_s > now_s:
            await asyncio.sleep(min(self._back_off_s, first.deadline_s - now_s))
            self._back_off_s = min(self._back_off_s * 2, BACK_OFF_MAX_S)
            now_s = asyncio.get_running_loop().time()
        while self._queue and self._queue[0].deadline_s <= now_s:
            self._give_up(self._queue[0], reason)
        self._forget_given_up()

    def _forget_given_up(self) -> None:
        """Forget flights for which nobody waits: one that takes no entry would be sent many."""
        waiting = set(self._queue)
        gone = [key for key, each in self._flights.items() if waiting.isdisjoint(each.wanted)]
        for key in gone:
            del self._flights[key]

    def _give_up(self, wanted: Wanted, reason: str) -> None:
        self._answer(wanted, Unknown(reason) if wanted.is_sent else Unavailable(reason))

    def _answer(self, wanted: Wanted, answer: Appended | Exception) -> None:
        """Answer what is in the queue."""
        self._pop(wanted)
        if wanted.answer.done():
            return
        if isinstance(answer, Exception):
            wanted.answer.set_exception(answer)
        else:
            wanted.answer.set_result(answer)

    def _refuse(self, error: Exception) -> None:
        """Answer what is first with an error that will not go away by itself."""
        if isinstance(error, Gone):
            # What is in doubt went with the log.
            self._end_doubt()
        first = self._queue[0] if self._queue else None
        self._forget(str(error))
        if isinstance(error, TooLarge):
            error = InvalidAppend(f"the server refuses it: {error}")
        elif isinstance(error, ServerRefused):
            self._refusal, self._outage = str(error), None
            self._refused_s = asyncio.get_running_loop().time()
            error = refusal(error)
        elif isinstance(error, Gap):
            error = damaged()
        if first is not None and first in self._queue:
            self._answer(first, error)

    def _forget(self, reason: str) -> None:
        """Have the state loaded anew; that passes over what is in doubt, so this is given up."""
        self._head = None
        for wanted in [each for each in self._queue if each.is_sent]:
            self._give_up(wanted, reason)
        self._flights.clear()

    def _end_doubt(self) -> None:
        """Take note that nothing under way can count any more."""
        for flight in self._flights.values():
            for wanted in flight.wanted:
                wanted.is_sent = False
        self._flights.clear()

    async def _step(self) -> None:
        """Write one entry."""
        if self._is_suspect:
            await self._look_back()
        if self._head is None:
            self._head = await load(self._log, self._search)
        head = self._head
        flight = await self._board(head)
        if flight is None:
            return
        self._flights[flight.entry.id] = flight
        for wanted in flight.wanted:
            wanted.is_sent = True
        data = flight.entry.to_bytes()
        try:
            position = await self._log.append(head.chain.seen, data)
        except Moved as moved:
            await self._catch_up(moved.last, flight)
            return
        except ServerDown as error:
            if not error.may_have_happened:
                self._dismiss(flight)
            raise
        except ServerRefused:
            self._dismiss(flight)
            raise
        if head.take(position, data) is None:  # no server should
            raise Malformed("a position behind the last one", f"the server answers {position}")
        self._land(position, flight.entry)
        self._plan_checkpoint(head)

    async def _look_back(self) -> None:
        """See that a server that was away answers, and still has what is known of it here.

        What it has lost others may have filled up again: then the positions alone tell nothing, and
        what is sent to follow a lost entry would be in everybody's way.
        """
        first, last = await self._log.ends()
        chain = self._head.chain if self._head is not None else None
        if chain is None:
            return
        if last < chain.seen:
            await self._catch_up(last)
        elif first <= chain.position and not await has(self._log, chain.position, chain.id):
            self._go_back(None)

    def _dismiss(self, flight: Flight) -> None:
        """Forget a flight that did not happen."""
        del self._flights[flight.entry.id]
        for wanted in flight.wanted:
            wanted.is_sent = any(wanted in other.wanted for other in self._flights.values())

    async def _catch_up(self, last: int, refused: Flight | None = None) -> None:
        """Read what others have written, and find what was written here without an answer.

        Args:
            last: Up to where.
            refused: What was to follow the newest entry that is known here, and does not.
        """
        head = self._head
        if head is None:
            return
        if last < head.chain.seen or (last == head.chain.seen and refused is not None):
            # The server has less than it had, or something else: it lost something. What is left
            # counts. That may be what was refused, where no entry that counts was lost.
            if last == 0 < head.chain.position:
                self._head = None
                raise Gone
            self._go_back(refused if last <= head.chain.position else None)
            return
        try:
            await catch_up(self._log, head, last, self._land)
        except Forked:
            self._go_back(refused)
        except (Gap, Malformed) as error:
            self._forget(str(error))
            raise

    def _go_back(self, refused: Flight | None) -> None:
        """Go on behind what the server has not lost; what was to follow that cannot count."""
        if refused is not None:
            self._dismiss(refused)
        self._forget("the server has lost entries")

    def _land(self, position: int, entry: Entry) -> None:
        """Answer what is in an entry that counts; whatever else is under way cannot count now."""
        flight = self._flights.get(entry.id)
        self._end_doubt()
        if flight is None:
            return
        offset = entry.offset
        for wanted in flight.wanted:
            place: int | None = position
            if wanted.kind is Kind.RECORDS:
                place = offset if wanted.fresh is wanted.batch else wanted.first_offset
                offset += wanted.fresh.count if wanted.fresh is not None else 0
            if wanted in self._queue:
                self._pop(wanted)
            if not wanted.answer.done():
                wanted.answer.set_result(Appended(entry.epoch, place))

    async def _board(self, head: Head) -> Flight | None:
        """Put what waits into an entry, as much as goes into one; answer what need not be."""
        boarding = Boarding(head, min(FLIGHT_BYTES, self._room_bytes))
        for wanted in tuple(islice(self._queue, BOARDED_MAX)):
            if wanted.kind is not Kind.RECORDS or wanted.batch is None:
                if not boarding.boarded:
                    return self._single(head, wanted)
                break
            if not boarding.takes(wanted, wanted.batch):
                break
            try:
                decision = boarding.decide(wanted.batch, wanted.epoch)
            except ConsensusError as error:
                if not wanted.is_checked:
                    # Another writer may have changed what it is refused for.
                    if not boarding.boarded:
                        await self._refresh()
                        wanted.is_checked = True
                    break
                self._answer(wanted, error)
                continue
            if isinstance(decision, Repeated):
                self._answer(wanted, Appended(head.epoch, decision.first_offset, True))
            else:
                boarding.board(wanted, decision)
        return self._records(head, boarding.boarded) if boarding.boarded else None

    @property
    def _room_bytes(self) -> int:
        return self._log.entry_bytes_max - ENTRY_OVERHEAD_BYTES

    def _records(self, head: Head, boarded: list[Wanted]) -> Flight:
        batches = [each.fresh for each in boarded if each.fresh is not None]
        count = sum(batch.count for batch in batches)
        entry = head.entry(
            self._clock.new_id(),
            Kind.RECORDS,
            pack_batches(batches),
            self._clock.time_ms(),
            count=count,
        )
        return Flight(entry, boarded)

    def _single(self, head: Head, wanted: Wanted) -> Flight:
        body = wanted.body(head) if wanted.body is not None else b""
        epoch = head.epoch + 1 if wanted.kind is Kind.FENCE else head.epoch
        entry = head.entry(
            self._clock.new_id(), wanted.kind, body, self._clock.time_ms(), epoch=epoch
        )
        return Flight(entry, [wanted])

    def _plan_checkpoint(self, head: Head) -> None:
        """Write a checkpoint where starting would have to read much."""
        due_bytes = max(CHECKPOINT_BYTES, self._checkpoint_bytes * 8)
        if head.uncovered_bytes < due_bytes or self._end_reason:
            return
        if self._checkpoint is None or self._checkpoint.done():
            self._checkpoint = asyncio.get_running_loop().create_task(self.checkpoint())
            self._checkpoint.add_done_callback(_seen)


def _as_it_is(body: bytes, _head: Head) -> bytes:
    """Make the body of an entry that is the same behind every other."""
    return body


def _seen(task: asyncio.Task[Head]) -> None:
    """A checkpoint that failed is written again later."""
    if not task.cancelled():
        task.exception()

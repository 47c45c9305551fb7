"""The contract of engines, kept on a log that a server holds."""

from __future__ import annotations

import asyncio
import struct
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from cogwork.engines.shared.chain import Gap, damaged
from cogwork.engines.shared.clock import Clock
from cogwork.engines.shared.entry import Kind, Part
from cogwork.engines.shared.loading import load_parts
from cogwork.engines.shared.retaining import Retaining
from cogwork.engines.shared.scan import Scan
from cogwork.engines.shared.search import Found, Search
from cogwork.engines.shared.server import ServerDown, ServerRefused, refusal
from cogwork.engines.shared.writer import BACK_OFF_FIRST_S, BACK_OFF_MAX_S, SILENCE, Writer
from cogwork.plugin.engine.contract import (
    Bounds,
    CaughtUp,
    EngineContext,
    FromOffset,
    FromTime,
    Origin,
    Snapshot,
)
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    Malformed,
    RecordsLost,
    Truncated,
    Unavailable,
    Unsupported,
)
from cogwork.plugin.engine.retention import Retention
from cogwork.plugin.engine.sequencer import demand_size

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

    from cogwork.engines.shared.server import ServerLog
    from cogwork.plugin.engine.batch import Batch, Chunk
    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Appended, Members, Start

__all__ = ("SharedStream",)

T = TypeVar("T")

TIMEOUT_S = 10.0
SCANS_KEPT = 4
"""Places at which `read` was left, so that it goes on there without looking for them."""

WAIT_S = 5.0

REMEDY = (
    "start the server, or see why it cannot be reached from here: the stream then goes on by itself"
)
_OFFSET = struct.Struct(">Q")


class SharedStream:
    """One stream; an `Engine`.

    Args:
        log: The server's.
        timeout_s: After so long a call is answered, whatever the server does.
        retention: What it gives up by itself.
        clock: What time it is.
        context: Takes what the operator should know.
        name: What the operator calls the stream.
    """

    def __init__(
        self,
        log: ServerLog,
        timeout_s: float = TIMEOUT_S,
        retention: Retention | None = None,
        clock: Clock | None = None,
        *,
        context: EngineContext | None = None,
        name: str = "",
    ) -> None:
        self._log = log
        self._timeout_s = timeout_s
        self._clock = clock or Clock()
        self._retention = retention or Retention()
        self._search = Search(log)
        self._writer = Writer(log, self._search, self._clock, timeout_s)
        self._snapshot_lock = asyncio.Lock()
        self._scans: OrderedDict[int, Scan] = OrderedDict()
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end_reason = "the stream was closed here"
        self._outage: str | None = None
        self._retaining: Retaining | None = None
        if self._retention != Retention():
            context = context or EngineContext()
            self._retaining = Retaining(
                self.retain,
                lambda: self.outage is not None,
                lambda text: context.report(f"{name}: {text}"),
                lambda text: context.warn(f"{name}: {text}"),
            )

    @property
    def capabilities(self) -> Capabilities:
        """What the server gives."""
        return replace(self._log.capabilities, batch_bytes_max=self._writer.batch_bytes_max)

    @property
    def is_closed(self) -> bool:
        """Whether it was let go."""
        return self._end.done()

    @property
    def outage(self) -> str | None:
        """Why the server does not take appends now, and what to do; None where it does."""
        reason = self._writer.outage or self._outage
        return self._writer.refusal if reason is None else f"{reason.rstrip('.')}; {REMEDY}"

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        """Append records, all or none, at one place; see `Engine`."""
        return self._writer.append(batch, epoch)

    def release_unsent(self, reason: str) -> None:
        """Answer appends that were never sent to the server."""
        self._writer.release_unsent(reason)

    async def fence(self) -> int:
        """Begin a new epoch and return it."""
        return await self._writer.fence()

    async def read(self, offset: int, max_bytes: int = 1 << 20) -> Sequence[Chunk]:
        """Return chunks from `offset` on; see `Engine`."""
        return await self._retry(lambda: self._read(offset, max_bytes))

    async def subscribe(self, start: Start) -> AsyncGenerator[Chunk | CaughtUp | Snapshot, None]:
        """Yield the chunks from `start` on; see `Engine`."""
        offset, snapshot, end = await self._retry(lambda: self._begin(start))
        if snapshot is not None:
            yield snapshot
        scan = Scan(self._log, self._search, offset)
        is_behind = True
        back_off_s = BACK_OFF_FIRST_S
        try:
            while True:
                if is_behind and scan.next_offset >= end:
                    is_behind = False
                    yield CaughtUp(scan.next_offset)
                if scan.ready:
                    yield scan.take()
                    continue
                try:
                    await self._unless_closed(scan.more(WAIT_S))
                    back_off_s = BACK_OFF_FIRST_S
                except ServerDown as error:
                    self._note_outage(str(error))
                    await self._unless_closed(asyncio.sleep(back_off_s))
                    back_off_s = min(back_off_s * 2, BACK_OFF_MAX_S)
                except ServerRefused as error:
                    raise refusal(error) from error
                except RecordsLost:
                    await self._forget_scans()
                    raise
        finally:
            await scan.rest()

    async def bounds(self) -> Bounds:
        """Return what the stream holds."""
        return await self._retry(self._bounds)

    async def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of this time or later; the next one if none is."""
        return await self._retry(lambda: self._offset_at(time_ms))

    async def trim(self, before: int) -> None:
        """Give up records below an offset; what shares an entry with others stays with them."""
        await self._retry(lambda: self._trim(before))

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep an application's snapshot instead of an earlier one."""
        demand_size(snapshot)
        async with self._snapshot_alone(self._timeout_s):
            bounds = await self.bounds()
            if snapshot.offset > bounds.next:
                raise BeyondEnd(snapshot.offset, bounds.next)
            kept = await self.load_snapshot()
            if kept is None or kept.offset <= snapshot.offset:
                self._check(snapshot.offset, bounds)
                await self._write_snapshot(snapshot)

    async def load_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return await self._retry(self._load_snapshot)

    async def members(self) -> Members:
        """Return which servers hold replicas."""
        return await self._retry(self._log.members)

    async def change_members(self, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
        """Is refused: which servers there are is decided where they are run."""
        del voters, learners
        raise Unsupported("change members, which is done where the servers are run")

    async def close(self) -> None:
        """Let the stream go; it stays where it is."""
        await self.end("the stream was closed here")

    async def end(self, reason: str) -> None:
        """Let the stream go, and say why to whoever still uses it."""
        if self._end.done():
            return
        self._end_reason = reason
        self._end.set_result(None)
        if self._retaining is not None:
            self._retaining.cancel()
        await self._writer.close(reason)
        await self._forget_scans()
        await self._log.close()

    async def _unless_closed(self, doing: Coroutine[object, object, T]) -> T:
        """Await something, but not beyond the end.

        Raises:
            Unavailable: The end has come.
        """
        if self._end.done():
            doing.close()
            raise Unavailable(self._end_reason)
        task = asyncio.ensure_future(doing)
        task.add_done_callback(_seen)
        try:
            await asyncio.wait((task, self._end), return_when=asyncio.FIRST_COMPLETED)
            if not self._end.done():
                return task.result()
            raise Unavailable(self._end_reason)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    async def _retry(self, call: Callable[[], Coroutine[object, object, T]]) -> T:
        """Call until the server answers, or until it is too late."""
        return await self._unless_closed(self._insist(call))

    async def _insist(self, call: Callable[[], Coroutine[object, object, T]]) -> T:
        back_off_s = BACK_OFF_FIRST_S
        reason = SILENCE
        loop = asyncio.get_running_loop()
        limit_s = loop.time() + self._timeout_s
        while loop.time() < limit_s:
            try:
                async with asyncio.timeout_at(limit_s):
                    found = await call()
                self._outage = None
                return found
            except TimeoutError:
                self._note_outage(reason)
                break
            except ServerDown as error:
                reason = str(error)
                self._note_outage(reason)
            except (ServerRefused, Gap) as error:
                self._outage = None  # it is there, and answers
                raise damaged() if isinstance(error, Gap) else refusal(error) from error
            await asyncio.sleep(min(back_off_s, max(0, limit_s - loop.time())))
            back_off_s = min(back_off_s * 2, BACK_OFF_MAX_S)
        raise Unavailable(reason)

    def _note_outage(self, reason: str) -> None:
        self._outage = reason
        self._writer.suspect()

    async def _begin(self, start: Start) -> tuple[int, Snapshot | None, int]:
        """Return the first offset, the snapshot before it, and where the stream ends now."""
        snapshot = await self._load_snapshot() if start is Origin.SNAPSHOT else None
        bounds = await self._bounds()  # as it is later: a snapshot may lie where the stream ends
        if isinstance(start, FromOffset):
            self._check(start.offset, bounds)
            return start.offset, None, bounds.next
        if isinstance(start, FromTime):
            return await self._offset_at(start.time_ms), None, bounds.next
        if start is Origin.NEXT:
            return bounds.next, None, bounds.next
        if start is Origin.LAST:
            return max(bounds.next - 1, bounds.first), None, bounds.next
        if snapshot is not None:
            self._check(snapshot.offset, bounds)
            return snapshot.offset, snapshot, bounds.next
        return bounds.first, None, bounds.next

    @staticmethod
    def _check(offset: int, bounds: Bounds) -> None:
        if offset < bounds.first:
            raise Truncated(bounds.first)
        if offset > bounds.next:
            raise BeyondEnd(offset, bounds.next)

    async def _bounds(self) -> Bounds:
        first = await self._search.first()
        last = await self._search.last()
        if first is None or last is None:
            return Bounds(0, 0, 0)
        size_bytes = last.entry.written + last.entry.size_bytes - first.entry.written
        return Bounds(first.entry.offset, last.entry.next_offset, size_bytes)

    async def _read(self, offset: int, max_bytes: int) -> list[Chunk]:
        bounds = await self._bounds()
        self._check(offset, bounds)
        scan = await self._scan_at(offset)
        chunks: list[Chunk] = []
        size_bytes = 0
        try:
            while scan.next_offset < bounds.next and size_bytes < max_bytes:
                if not scan.ready:
                    await scan.more(WAIT_S)
                    continue
                chunk = scan.take()
                chunks.append(chunk)
                size_bytes += len(chunk.batch.payload)
        except BaseException:
            await scan.rest()
            raise
        await self._keep(scan)
        return chunks

    async def _scan_at(self, offset: int) -> Scan:
        """Return the scan that was left there, or a new one where the server has lost of that."""
        kept = self._scans.pop(offset, None)
        if kept is None:
            return Scan(self._log, self._search, offset)
        try:
            await kept.check()
        except RecordsLost as lost:
            await kept.rest()
            await self._forget_scans()
            if lost.end < offset:
                raise
        except BaseException:
            await kept.rest()
            raise
        else:
            return kept
        return Scan(self._log, self._search, offset)

    async def _keep(self, scan: Scan) -> None:
        other = self._scans.pop(scan.next_offset, None)
        self._scans[scan.next_offset] = scan
        if other is None and len(self._scans) > SCANS_KEPT:
            _, other = self._scans.popitem(last=False)
        if other is not None:
            await other.rest()

    async def _forget_scans(self) -> None:
        """Forget what was read and not taken: the server may have lost it."""
        scans, self._scans = self._scans, OrderedDict()
        for scan in scans.values():
            await scan.rest()

    async def _offset_at(self, time_ms: int) -> int:
        found = await self._search.last_with(lambda entry: entry.time_ms < time_ms)
        if found is not None:
            return found.entry.next_offset
        return (await self._bounds()).first

    async def _trim(self, before: int) -> None:
        bounds = await self._bounds()
        before = min(before, bounds.next)
        if before <= bounds.first:
            return
        found = await self._search.last_with(lambda entry: entry.offset <= before)
        if found is None:
            return
        head = await self._writer.refreshed()
        if found.position > head.checkpoint:
            head = await self._writer.checkpoint()
        if before == bounds.next:
            found = await self._search.last_with(lambda entry: entry.offset <= before) or found
        cut = min(found.position, head.checkpoint)
        if 0 < head.snapshot < cut:
            # Less than all the time there is: who waits in vain is told why.
            async with self._snapshot_alone(self._timeout_s / 2):
                await self._save_from(cut)
        await self._log.trim(await self._anchor(cut))

    async def _save_from(self, cut: int) -> None:
        """Write the snapshot anew, if it would be given up with what is below a position."""
        place = (await self._writer.refreshed()).snapshot
        while 0 < place < cut:
            snapshot = await self._load_snapshot()
            found, place = place, (await self._writer.refreshed()).snapshot
            if snapshot is None:
                return
            if place == found:  # else another container has saved a newer one meanwhile
                await self._write_snapshot(snapshot)
                return

    async def _write_snapshot(self, snapshot: Snapshot) -> None:
        await self._writer.snapshot(_OFFSET.pack(snapshot.offset) + snapshot.data)

    @asynccontextmanager
    async def _snapshot_alone(self, wait_s: float) -> AsyncGenerator[None, None]:
        """Keep others from writing a snapshot between a look at the newest one and a new one.

        Raises:
            Unavailable: Another one is being written, and takes long.
        """
        try:
            async with asyncio.timeout(wait_s):
                await self._snapshot_lock.acquire()
        except TimeoutError:
            raise Unavailable("another snapshot is still being written") from None
        try:
            yield
        finally:
            self._snapshot_lock.release()

    async def retain(self) -> None:
        """Give up what retention does not keep."""
        await self.trim(await self._retry(self._unretained))

    async def _unretained(self) -> int:
        """Return the offset up to which retention gives everything up."""
        kept = self._retention
        before = 0
        if kept.records is not None:
            before = max(before, (await self._bounds()).next - kept.records)
        if kept.age_s is not None:
            time_ms = self._clock.time_ms() - int(kept.age_s * 1000)
            before = max(before, await self._offset_at(time_ms))
        last = await self._search.last()
        if kept.size_bytes is not None and last is not None:
            limit = last.entry.written + len(last.entry.body) - kept.size_bytes
            found = await self._search.last_with(lambda entry: entry.written <= limit)
            before = max(before, found.entry.offset if found is not None else 0)
        return before

    async def _anchor(self, position: int) -> int:
        """Return a position at which the log can be cut: the next reader must see it counts."""
        first, _ = await self._log.ends()
        while position > first:
            found = await self._search.until(position, first)
            if found is None or found.entry.previous == found.position - 1:
                return found.position if found is not None else first
            position = found.entry.previous
        return first

    async def _load_snapshot(self) -> Snapshot | None:
        """Load the newest snapshot; the next one where that is given up meanwhile."""
        place = 0
        problem: Exception | None = None
        while (newest := await self._snapshot_place()) != place:
            place, problem = newest, None
            try:
                snapshot = await self._snapshot_at(place)
                if snapshot is not None:
                    return snapshot
            except (Gap, Malformed) as error:
                problem = error
        if problem is not None:
            raise problem
        return None

    async def _snapshot_place(self) -> int:
        """Return where the newest complete snapshot begins; 0 for none."""
        last = await self._search.last()
        if last is None:
            return 0
        if last.entry.kind is Kind.SNAPSHOT:
            part = Part.from_bytes(last.entry.body)
            if part.is_last:
                return part.first or last.position
        return last.entry.snapshot

    async def _snapshot_at(self, position: int) -> Snapshot | None:
        """Return the snapshot that begins at a position; None where nothing does.

        Raises:
            Gap: Some of it is missing.
            Malformed: Some of it is missing, or damaged.
        """
        first, _ = await self._log.ends()
        found = await self._search.until(position, first)
        if found is None or found.position != position or found.entry.kind is not Kind.SNAPSHOT:
            return None
        data = await load_parts(self._log, Found(position, found.entry))
        if data is None or len(data) < _OFFSET.size:
            raise Malformed("an application's snapshot", "some of it is missing")
        return Snapshot(_OFFSET.unpack_from(data)[0], data[_OFFSET.size :])


def _seen(task: asyncio.Future[T]) -> None:
    """What goes wrong at the end is of no interest, nor where nobody waits for it any more."""
    if not task.cancelled():
        task.exception()

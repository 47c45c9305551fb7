"""What the conformance kit of engines works with: a trial with a stream, and readers that check.

A trial is one test's: it has a host, a stream of its own name, and a time in which it must be over.
"""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar
from unittest import SkipTest

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import CaughtUp, Origin, Snapshot
from cogwork.plugin.engine.errors import Busy, ConsensusError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from cogwork.plugin.conformance.engines.kit import Kit
    from cogwork.plugin.engine.contract import Appended, Engine, EngineHost, Start, Subscription

__all__ = ("PRODUCER", "Placed", "Raises", "Reader", "Trial", "promise", "refuses")

Placed = tuple[int, bytes]
"""A record with its offset."""

PRODUCER = b"producer \0\xff"
"""Any octets are an id."""

BUSY_PAUSE_S = 0.01

E = TypeVar("E", bound=ConsensusError)


class Trial:
    """One test's host and stream.

    Attributes:
        name: The stream's.
        host: A host of the engine.
        engine: The stream.
        timeout_s: How long to wait for what has to come.
    """

    def __init__(
        self, make_host: Callable[[], EngineHost], options: Mapping[str, object], timeout_s: float
    ) -> None:
        self.name = f"trial-{uuid.uuid4().hex}"
        self.host = make_host()
        self.timeout_s = timeout_s
        self.engine: Engine
        self._make_host = make_host
        self._options = options
        self._more: list[EngineHost] = []
        self._readers: list[Reader] = []

    async def begin(self) -> None:
        """Open the stream."""
        self.engine = await self.open()

    async def open(self) -> Engine:
        """Open the stream once more."""
        return await self.host.open(self.name, self._options)

    async def open_elsewhere(self) -> Engine:
        """Open the stream on another host, where streams outlive theirs; else on the same."""
        if not self.host.capabilities.survives_close:
            return await self.open()
        host = self._make_host()
        self._more.append(host)
        return await host.open(self.name, self._options)

    async def restart(self) -> None:
        """Close the stream, and the host where streams outlive theirs, and open it again."""
        await self.engine.close()
        if self.host.capabilities.survives_close:
            await self.host.close()
            self.host = self._make_host()
        await self.begin()

    async def end(self) -> None:
        """Leave nothing behind."""
        for reader in self._readers:
            await reader.close()
        await self.host.delete(self.name)
        for host in (*self._more, self.host):
            await host.close()

    async def append(self, *records: bytes, producer: bytes = b"", sequence: int = 0) -> Appended:
        """Append records as one batch, and again where the engine is busy."""
        batch = Batch.of(records, producer, sequence)
        while True:
            try:
                return await self.engine.append(batch)
            except Busy:
                await asyncio.sleep(BUSY_PAUSE_S)

    async def fill(self, count: int, size_bytes: int = 0) -> list[bytes]:
        """Append `count` different records, one by one, and return them."""
        records = [b"%06d" % i + bytes(size_bytes) for i in range(count)]
        for record in records:
            await self.append(record)
        return records

    async def records(self, first: int | None = None) -> list[Placed]:
        """Read everything there is, from the first offset or another one on."""
        bounds = await self.engine.bounds()
        found: list[Placed] = []
        offset = bounds.first if first is None else first
        while offset < bounds.next:
            chunks = await self.engine.read(offset)
            assert chunks, f"nothing at {offset}, although the next offset is {bounds.next}"
            for chunk in chunks:
                assert chunk.offset == offset, f"a chunk at {chunk.offset} instead of {offset}"
                found.extend(placed(chunk))
                offset = chunk.next_offset
        return found

    def reader(self, start: Start = Origin.FIRST, engine: Engine | None = None) -> Reader:
        """Subscribe."""
        reader = Reader((engine or self.engine).subscribe(start), self.timeout_s)
        self._readers.append(reader)
        return reader


class Reader:
    """A subscriber that lets no gap and no repetition pass.

    Attributes:
        records: What came, with offsets.
        chunks: The same as it came.
        snapshot: What came before.
        caught_up: The offsets at which it was told to have caught up; more than one is an error.
    """

    def __init__(self, subscription: Subscription, timeout_s: float) -> None:
        self._subscription = subscription
        self._timeout_s = timeout_s
        self.records: list[Placed] = []
        self.chunks: list[Chunk] = []
        self.snapshot: Snapshot | None = None
        self.caught_up: list[int] = []

    @property
    def next(self) -> int | None:
        """The offset that has to come next, once anything has come."""
        if self.records:
            return self.records[-1][0] + 1
        return self.caught_up[0] if self.caught_up else None

    async def step(self) -> Chunk | CaughtUp | Snapshot:
        """Take what comes next."""
        async with asyncio.timeout(self._timeout_s):
            found = await anext(self._subscription)
        if isinstance(found, Chunk):
            assert self.next in (None, found.offset), f"{found.offset} instead of {self.next}"
            self.chunks.append(found)
            self.records.extend(placed(found))
        elif isinstance(found, CaughtUp):
            assert not self.caught_up, "told twice that it has caught up"
            assert self.next in (None, found.next), f"caught up at {found.next}, not {self.next}"
            self.caught_up.append(found.next)
        else:
            assert self.snapshot is None
            assert self.next is None, "a snapshot that does not come first"
            self.snapshot = found
        return found

    async def catch_up(self) -> Reader:
        """Read until it is told to have caught up."""
        while not self.caught_up:
            await self.step()
        return self

    async def read_to(self, offset: int) -> list[Placed]:
        """Read until it has all records below an offset."""
        while (self.next or 0) < offset:
            await self.step()
        return self.records

    async def close(self) -> None:
        """End it."""
        await self._subscription.aclose()


def placed(chunk: Chunk) -> Iterable[Placed]:
    """Yield a chunk's records with their offsets."""
    records = list(chunk.batch.records())
    assert len(records) == chunk.batch.count, "a chunk has another number of records than it says"
    return enumerate(records, chunk.offset)


def promise(
    test: Callable[..., Awaitable[None]] | None = None, *, needs: str = "", lacks: str = ""
) -> Callable[..., object]:
    """Make a test of what takes a trial, and run it on an event loop of its own.

    Args:
        test: Takes the kit and a trial.
        needs: A capability without which it is skipped.
        lacks: A capability with which it is skipped.
    """
    if test is None:
        return partial(promise, needs=needs, lacks=lacks)

    def run(kit: Kit) -> None:
        asyncio.run(_run(kit, test, needs, lacks))

    # Not functools.wraps: a test's arguments would be taken for fixtures.
    run.__name__ = test.__name__
    run.__qualname__ = test.__qualname__
    run.__doc__ = test.__doc__
    return run


async def _run(kit: Kit, test: Callable[..., Awaitable[None]], needs: str, lacks: str) -> None:
    trial = kit.trial()
    capabilities = trial.host.capabilities
    try:
        if needs and not getattr(capabilities, needs):
            raise SkipTest(f"it declares {needs}=False")
        if lacks and getattr(capabilities, lacks):
            raise SkipTest(f"it declares {lacks}=True")
        async with asyncio.timeout(trial.timeout_s):
            await trial.begin()
            await test(kit, trial)
    finally:
        await trial.end()


class Raises(Generic[E]):
    """Sees that an error of a type comes, and keeps it: an engine's author may have no pytest.

    Attributes:
        found: The error.
    """

    def __init__(self, expected: type[E]) -> None:
        self._expected = expected
        self.found: E

    def __enter__(self) -> Raises[E]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        assert error is not None, f"{self._expected.__name__} did not come"
        if not isinstance(error, self._expected):
            return False
        self.found = error
        return True


async def refuses(call: Callable[[], Awaitable[object]]) -> None:
    """See that a call is refused as not to be had."""
    with Raises(Unsupported):
        await call()

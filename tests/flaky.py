"""An engine that does what a test tells it: the orb, with failures in between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.engines.orb import CAPABILITIES, OrbHost
from cogwork.plugin.engine.errors import ConsensusError, Unavailable, Unknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cogwork.plugin.engine.batch import Batch, Chunk
    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Appended, Bounds, Engine, EngineContext


class Faults:
    """What is to go wrong: one for all streams of a test.

    Attributes:
        appends: For each append to come, what it raises; None lets it through.
        after: Of appends that raise `Unknown`, whether they were appended before.
        opening: How often opening fails before it succeeds.
        refusal: Why opening fails for good, once it does not fail for a while; None: it succeeds.
        delay_s: How long answers take.
        bounds_s: How long a stream takes to say what it holds.
        nonsense: Whether it answers nonsense to that, at which its library fails.
        lagging: How often a read finds nothing, as at a replica that is behind the one that
            told of the records.
    """

    def __init__(self) -> None:
        self.appends: list[Callable[[], ConsensusError] | None] = []
        self.after = True
        self.opening = 0
        self.refusal: str | None = None
        self.delay_s = 0.0
        self.bounds_s = 0.0
        self.nonsense = False
        self.lagging = 0


FAULTS = Faults()


class FlakyHost(OrbHost):
    """Opens streams that fail."""

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(None)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> FlakyEngine:  # type: ignore[override]  # an engine, too
        if FAULTS.opening:
            FAULTS.opening -= 1
            raise Unavailable("its server is away")
        if FAULTS.refusal is not None:
            raise ValueError(FAULTS.refusal)
        return FlakyEngine(await super().open(stream, options))


class FlakyEngine:
    """A stream whose appends fail as told."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    async def bounds(self) -> Bounds:
        await asyncio.sleep(FAULTS.bounds_s)
        if FAULTS.nonsense:
            raise KeyError("bounds")
        return await self._engine.bounds()

    async def read(self, offset: int, max_bytes: int = 1 << 20) -> Sequence[Chunk]:
        if FAULTS.lagging:
            FAULTS.lagging -= 1
            return ()
        return await self._engine.read(offset, max_bytes)

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        fault = FAULTS.appends.pop(0) if FAULTS.appends else None
        error = fault() if fault is not None else None
        if error is None or (isinstance(error, Unknown) and FAULTS.after):
            answer = self._engine.append(batch, epoch)
        return self._answered(answer if error is None else None, error)

    async def _answered(
        self, answer: Awaitable[Appended] | None, error: ConsensusError | None
    ) -> Appended:
        await asyncio.sleep(FAULTS.delay_s)
        if error is not None:
            raise error
        assert answer is not None
        return await answer

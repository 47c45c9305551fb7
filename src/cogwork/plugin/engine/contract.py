"""The contract of every engine: one stream's records, in one order, for everybody.

Promises. *Total order*: every subscriber is given the same chunks, in offset order, without a gap.
*Uniform agreement*, where declared: what one was given all others will be. *Integrity*: nothing is
given out that nobody appended, and a record with producer and sequence once. *First in, first out*
for each producer. *Fencing*: an append with an old epoch is refused for ever.

Octets are opaque: no engine looks into a record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from cogwork.plugin.engine.batch import Batch, Chunk
    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.errors import ConsensusError

__all__ = (
    "Appended",
    "Bounds",
    "CaughtUp",
    "Engine",
    "EngineContext",
    "EngineFactory",
    "EngineHost",
    "FromOffset",
    "FromTime",
    "Members",
    "Origin",
    "PromptEngine",
    "Snapshot",
    "Start",
    "Subscription",
    "WatchfulEngine",
)


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The answer to an append.

    Attributes:
        epoch: Under which it was appended.
        first_offset: Of the batch's first record; None where that one is a repetition, and has been
            in the stream for so long that nobody remembers where.
        is_repeated: Whether all records were in the stream before.
    """

    epoch: int
    first_offset: int | None
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a stream holds.

    Attributes:
        first: The oldest offset that can be read.
        next: The offset that the next record will have.
        size_bytes: What the records take, by which the engine keeps or gives them up; None where it
            does not say. Two streams are compared without it.
    """

    first: int
    next: int
    size_bytes: int | None = field(default=None, compare=False)


class Origin(Enum):
    """Where a subscription can start without a number."""

    FIRST = "first"
    """The oldest record there is."""

    LAST = "last"
    """The newest record there is."""

    NEXT = "next"
    """What is appended from now on."""

    SNAPSHOT = "snapshot"
    """The application's newest snapshot, which comes first; else the oldest record."""


@dataclass(frozen=True, slots=True)
class FromOffset:
    """Starts at this offset; at most the next one."""

    offset: int


@dataclass(frozen=True, slots=True)
class FromTime:
    """Starts at the first record of this time (milliseconds since 1970, UTC) or later."""

    time_ms: int


Start = Origin | FromOffset | FromTime


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an application keeps instead of replaying what led to it.

    Attributes:
        offset: Of the first record that is not in it.
        data: The application's own.
    """

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Comes once in each subscription, after the last record there was when it started.

    Attributes:
        next: The offset that follows.
    """

    next: int


@dataclass(frozen=True, slots=True)
class Members:
    """Who holds replicas.

    Attributes:
        voters: Those that count for the majority.
        learners: Those that follow.
        leader: Who takes appends, as far as it is known.
    """

    voters: tuple[str, ...]
    learners: tuple[str, ...] = ()
    leader: str | None = None


class Subscription(Protocol):
    """Chunks in offset order, without a gap and without an end; an async generator is one.

    First a `Snapshot`, where it was asked for and is there; `CaughtUp` once. Where it starts is
    settled when the first of all these has come, and not before.
    """

    def __aiter__(self) -> AsyncIterator[Chunk | CaughtUp | Snapshot]:
        """Return itself."""

    def __anext__(self) -> Awaitable[Chunk | CaughtUp | Snapshot]:
        """Return what comes next.

        Raises:
            BeyondEnd: It was to start above the next offset.
            RecordsLost: What keeps the stream has lost some of what was given out.
            Truncated: What is next has been given up by retention.
            Unavailable: The engine or the stream has been closed.
        """

    async def aclose(self) -> None:
        """End it."""


class Engine(Protocol):
    """One stream on an engine.

    What an engine does not declare it refuses with `Unsupported`.

    Memory is bounded everywhere: an append beyond the bound raises `Busy`, a subscriber that does
    not take what comes reads it again from the stream later, and stalls nobody.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        """Append records, all or none, at one place.

        Appends of one caller take effect in the order of the calls; the next may be made before the
        last one is answered. Cancelling the awaitable undoes nothing.

        Args:
            batch: The records.
            epoch: Refuses the append where the stream's epoch is another one; None takes any.

        Raises:
            Busy: Too much is under way.
            Fenced: The epoch is not that of the stream.
            NotLeader: Another replica takes appends, and this engine does not pass them on.
            OutOfSequence: Records of the producer are missing before these.
            SequenceReused: The producer has used the sequence for other records.
            InvalidAppend: The batch is empty, too large, or otherwise none.
            Unavailable: Nobody takes it now.
            Unknown: It may have happened, or not.
        """

    async def fence(self) -> int:
        """Begin a new epoch and return it: append that name an older one are refused.

        Raises:
            Unavailable: Nobody takes it now.
        """

    async def read(self, offset: int, max_bytes: int = 1 << 20) -> Sequence[Chunk]:
        """Return chunks from `offset` on, cut so that the first begins there; none at the end.

        Args:
            offset: From the first to the next one.
            max_bytes: About how many octets; at least one chunk comes where there is any.

        Raises:
            Truncated: The offset is below the first one.
            BeyondEnd: The offset is above the next one.
        """

    def subscribe(self, start: Start) -> Subscription:
        """Yield the chunks from `start` on; a wrong start is told by the first step."""

    async def bounds(self) -> Bounds:
        """Return what the stream holds."""

    async def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of this time or later; the next one if none is."""

    async def trim(self, before: int) -> None:
        """Give up records below an offset; whole segments at a time, so that some may stay.

        What an offset above the end gives up is everything.
        """

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep an application's snapshot instead of an earlier one.

        Raises:
            BeyondEnd: It speaks of records that the stream does not have.
            InvalidSnapshot: It is too large.
            Truncated: What follows it has been given up: nobody could go on from there.
        """

    async def load_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""

    async def members(self) -> Members:
        """Return who holds replicas."""

    async def change_members(self, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
        """Have others hold the replicas; return when they do."""

    async def close(self) -> None:
        """Let the stream go; it stays where it is.

        Appends under way are answered, or raise `Unknown` or `Unavailable`; subscriptions end with
        `Unavailable`, and so does whatever is asked for later.
        """


@runtime_checkable
class PromptEngine(Engine, Protocol):
    """An engine that can call at once instead of being awaited, as it works in this event loop.

    It calls in turns of its own, at whose end it has the data plane send what was written.
    """

    def append_then(
        self, batch: Batch, told: Callable[[Appended | int | ConsensusError], object]
    ) -> None:
        """Append records, as `append` does.

        Args:
            batch: The records.
            told: Called once with the answer, or with what `append` would raise; perhaps before
                this returns.
        """

    def watch(self, on_more: Callable[[], object]) -> Awaitable[None] | None:
        """Have something called whenever more can be read here.

        Args:
            on_more: Called without arguments.

        Returns:
            What is done when it will not be called any more; None where the stream cannot be read
            here, and has to be subscribed to.
        """

    def read_here(self, offset: int, max_bytes: int = 1 << 20) -> Sequence[Chunk] | None:
        """Return chunks that are here from `offset` on, as `read`; None where none can be.

        What is not here yet is no error: then there are none.

        Raises:
            Truncated: The offset is below the first one.
            Unavailable: What is here cannot be read; `read` asks others.
        """

    def glance(self) -> tuple[Bounds, Members] | None:
        """Return what the stream is as far as it is known here, at once; None where it is not."""


@runtime_checkable
class WatchfulEngine(Engine, Protocol):
    """An engine that notices by itself when what keeps its stream is away.

    Of another one that is known only once it is asked for its bounds, and does not tell them.
    """

    @property
    def outage(self) -> str | None:
        """Why appends cannot be taken now, and what to do about it; None where they can.

        As far as that is known: bounds and members are asked for until they are told again.
        """


@runtime_checkable
class ReleasingEngine(Engine, Protocol):
    """An engine in which appends wait, and that knows which of them it has never sent anywhere."""

    def release_unsent(self, reason: str) -> None:
        """Answer these with `Unavailable`, and never sends them: who waits is about to go.

        Args:
            reason: Why.
        """


class EngineHost(Protocol):
    """Opens streams on one kind of engine: what an entry point of `cogwork.engines` makes.

    A stream may be open more than once, here and on other hosts: all see the same.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What the streams will declare, as far as options do not change it."""

    async def open(self, stream: str, options: Mapping[str, object]) -> Engine:
        """Open a stream; make it where it is new.

        Args:
            stream: Its name, unique on this host.
            options: The declaration's, by name.

        Raises:
            Unavailable: The engine's server cannot be reached.
            ValueError: An option is wrong; the text says which and what would be right.
        """

    async def delete(self, stream: str) -> None:
        """Give up a stream with all its records; one that is not there is none already.

        Where it is open, it becomes `Unavailable`. Under its name a new one begins at offset 0.
        """

    async def close(self) -> None:
        """Let go of all streams."""


def _discard(report: str) -> None:
    del report


@dataclass(frozen=True, slots=True)
class EngineContext:
    """What an engine's host is made with.

    Attributes:
        options: From the configuration: where the engine's servers are, and how to speak to them.
        container_id: Whose it is; empty outside a container.
        report: Takes what the operator should know, a line at a time.
        warn: Takes what the operator has to see to, a line at a time.
    """

    options: Mapping[str, object] = field(default_factory=dict)
    container_id: str = ""
    report: Callable[[str], None] = _discard
    warn: Callable[[str], None] = _discard


class EngineFactory(Protocol):
    """Makes hosts: what an entry point of `cogwork.engines` names, most simply a class."""

    def __call__(self, context: EngineContext) -> EngineHost:
        """Make a host; connect nowhere yet.

        Raises:
            ValueError: An option is wrong; the text says which and what would be right.
        """

"""What containers ask each other about streams: calls and answers, as octets.

Calls travel where the messages of consensus travel, and may be lost like these: who asks waits for
so long and asks again, or somebody else. MessagePack, and nothing that is not declared here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cogwork.cluster.members import MemberFacts  # noqa: TC001  # msgspec reads the annotations
from cogwork.plugin.engine.chunks import decode_command
from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import (
    BeyondEnd,
    Busy,
    ConsensusError,
    Fenced,
    InvalidAppend,
    InvalidSnapshot,
    Malformed,
    NotLeader,
    OutOfSequence,
    SequenceReused,
    Truncated,
    Unavailable,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = (
    "Answer",
    "AppliedIs",
    "Bounded",
    "Call",
    "Failed",
    "FindTime",
    "FloorIs",
    "GetApplied",
    "GetBounds",
    "GetFloor",
    "GetIdentity",
    "GetMembers",
    "GetMove",
    "GetRoom",
    "GetSnapshot",
    "IdentityIs",
    "MembersAre",
    "MoveIs",
    "Place",
    "Proposal",
    "Read",
    "Records",
    "Refused",
    "Results",
    "RoomIs",
    "SnapshotIs",
    "StreamKey",
    "TimeIs",
    "decode",
    "encode",
    "error_of",
    "failure_of",
)


class StreamKey(msgspec.Struct, frozen=True, array_like=True):
    """Which stream is meant: one that is deleted and made again under its name is another one.

    Attributes:
        name: Its name.
        group: The number of its group; 0 where no group is meant.
    """

    name: str
    group: int = 0


class _Call(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Asks.

    Attributes:
        number: The caller's, to know the answer by.
        stream: Whose replica is meant.
    """

    number: int
    stream: StreamKey


class Proposal(_Call, frozen=True, array_like=True, tag=True):
    """Commands of the sequencer, to be applied in this order, by the leader alone."""

    commands: list[bytes]


class Read(_Call, frozen=True, array_like=True, tag=True):
    """Chunks from an offset on; where there are none, waits for some."""

    offset: int
    max_bytes: int
    wait_ms: int


class GetBounds(_Call, frozen=True, array_like=True, tag=True):
    """The first and the next offset, as new as any answer that anybody has had."""


class FindTime(_Call, frozen=True, array_like=True, tag=True):
    """The first offset of a time or later."""

    time_ms: int


class GetSnapshot(_Call, frozen=True, array_like=True, tag=True):
    """The application's newest snapshot."""


class GetMembers(_Call, frozen=True, array_like=True, tag=True):
    """Who holds replicas."""


class GetMove(_Call, frozen=True, array_like=True, tag=True):
    """Which move of the stream the container knows of, and has a replica since."""


class GetRoom(_Call, frozen=True, array_like=True, tag=True):
    """Whether the container can hold one replica more.

    Attributes:
        voters: Of `$cluster`, where the caller learns what is declared.
    """

    voters: list[str]


class GetIdentity(_Call, frozen=True, array_like=True, tag=True):
    """Which cluster the container is in.

    Attributes:
        wants_facts: Whether the answer is to have `facts`; versions that do not know of them pass
            over it.
    """

    wants_facts: bool = False


class GetFloor(_Call, frozen=True, array_like=True, tag=True):
    """How far the replica has come, for one that has to begin again."""


class GetApplied(_Call, frozen=True, array_like=True, tag=True):
    """Says once the container has applied the declarations up to an offset.

    Attributes:
        next: The offset of the first one that it need not have applied.
    """

    next: int


class _Answer(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Answers.

    Attributes:
        number: That of the call.
    """

    number: int


class Place(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Where a batch is."""

    epoch: int
    first_offset: int | None
    is_repeated: bool

    def appended(self) -> Appended:
        """Return it as the contract's."""
        return Appended(self.epoch, self.first_offset, self.is_repeated)


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Why not.

    Attributes:
        kind: Names the error.
        numbers: What it says.
        text: In words.
    """

    kind: str
    numbers: list[int] = []
    text: str = ""


class Results(_Answer, frozen=True, array_like=True, tag=True):
    """What became of a proposal's commands, in order."""

    results: list[Place | Failed | int]


class Records(_Answer, frozen=True, array_like=True, tag=True):
    """Encoded chunks, and where the stream ends."""

    chunks: list[bytes]
    next_offset: int


class Bounded(_Answer, frozen=True, array_like=True, tag=True):
    """A stream's bounds, and what its records take at this replica."""

    first: int
    next: int
    size_bytes: int


class TimeIs(_Answer, frozen=True, array_like=True, tag=True):
    """The offset of a time."""

    offset: int


class SnapshotIs(_Answer, frozen=True, array_like=True, tag=True):
    """A snapshot; an offset below 0 where there is none."""

    offset: int
    data: bytes


class MembersAre(_Answer, frozen=True, array_like=True, tag=True):
    """Who holds replicas."""

    voters: list[str]
    learners: list[str]
    leader: str | None


class MoveIs(_Answer, frozen=True, array_like=True, tag=True):
    """A move that is declared; a replica that is to be given up for an earlier one is no more."""

    move: int


class RoomIs(_Answer, frozen=True, array_like=True, tag=True):
    """What a container has.

    Attributes:
        replicas: How many it holds.
        problem: Why it can hold no more; empty where it can.
    """

    replicas: int
    problem: str


class IdentityIs(_Answer, frozen=True, array_like=True, tag=True):
    """What a container knows of its cluster.

    Attributes:
        uuid: The cluster's; empty where it is not known.
        is_empty: Whether the container has an empty data directory, and has not begun.
        token: Of its data directory; empty where it has none.
        founders: The tokens of those that founded the cluster, by container.
        level: The highest feature level that it knows; versions from before there were any do not
            say one, and pass over it.
        facts: What it says of itself as a member; None unless it was asked for.
    """

    uuid: str
    is_empty: bool
    token: str
    founders: dict[str, str]
    level: int = 1
    facts: MemberFacts | None = None


class FloorIs(_Answer, frozen=True, array_like=True, tag=True):
    """How far a replica has come.

    Attributes:
        term: Its term.
        last_index: Of the last entry in its log.
        voters: Those that vote as far as it knows, of both halves while they are changed.
        has_forgotten: Whether it has begun again itself, and does not have what others have.
    """

    term: int
    last_index: int
    voters: list[str]
    has_forgotten: bool


class AppliedIs(_Answer, frozen=True, array_like=True, tag=True):
    """How far the container has applied the declarations.

    Attributes:
        next: The offset of the next one.
    """

    next: int


class Refused(_Answer, frozen=True, array_like=True, tag=True):
    """The call as a whole was not carried out.

    Attributes:
        failure: Why not.
        may_happen: Whether it may be all the same: what a former leader took the next one may have.
    """

    failure: Failed
    may_happen: bool = False


Call = (
    Proposal
    | Read
    | GetBounds
    | FindTime
    | GetSnapshot
    | GetMembers
    | GetMove
    | GetRoom
    | GetIdentity
    | GetFloor
    | GetApplied
)
Answer = (
    Results
    | Records
    | Bounded
    | TimeIs
    | SnapshotIs
    | MembersAre
    | MoveIs
    | RoomIs
    | IdentityIs
    | FloorIs
    | AppliedIs
    | Refused
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Call | Answer)


def encode(message: Call | Answer) -> bytes:
    """Write a call or an answer."""
    return _encoder.encode(message)


def decode(data: bytes | memoryview) -> Call | Answer:
    """Read a call or an answer.

    Raises:
        Malformed: It is neither, or proposes what is no command: no replica could ever apply that.
    """
    try:
        message: Call | Answer = _decoder.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Malformed("a call between containers", str(error)) from error
    if isinstance(message, Proposal):
        for command in message.commands:
            decode_command(command)
    return message


_PUT: dict[type[ConsensusError], Callable[[Any], tuple[list[int], str]]] = {
    NotLeader: lambda error: ([], error.hint or ""),
    Fenced: lambda error: ([error.epoch], ""),
    Truncated: lambda error: ([error.first], ""),
    OutOfSequence: lambda error: ([error.expected, error.found], ""),
    SequenceReused: lambda error: ([error.sequence], ""),
    BeyondEnd: lambda error: ([error.offset, error.next], ""),
    Busy: lambda error: ([], error.reason),
    Unavailable: lambda error: ([], error.reason),
    Unknown: lambda error: ([], error.reason),
    InvalidAppend: lambda error: ([], str(error)),
    InvalidSnapshot: lambda error: ([error.size_bytes, error.max_bytes], ""),
}
_MADE: dict[str, Callable[[Failed], ConsensusError]] = {
    "NotLeader": lambda failed: NotLeader(failed.text or None),
    "Fenced": lambda failed: Fenced(failed.numbers[0]),
    "Truncated": lambda failed: Truncated(failed.numbers[0]),
    "OutOfSequence": lambda failed: OutOfSequence(failed.numbers[0], failed.numbers[1]),
    "SequenceReused": lambda failed: SequenceReused(failed.numbers[0]),
    "BeyondEnd": lambda failed: BeyondEnd(failed.numbers[0], failed.numbers[1]),
    "Busy": lambda failed: Busy(failed.text),
    "Unavailable": lambda failed: Unavailable(failed.text),
    "Unknown": lambda failed: Unknown(failed.text),
    "InvalidAppend": lambda failed: InvalidAppend(failed.text),
    "InvalidSnapshot": lambda failed: InvalidSnapshot(failed.numbers[0], failed.numbers[1]),
}


def failure_of(error: ConsensusError) -> Failed:
    """Put an error into an answer."""
    put = _PUT.get(type(error))
    if put is None:
        return Failed(Unavailable.__name__, [], str(error))
    numbers, text = put(error)
    return Failed(type(error).__name__, numbers, text)


def error_of(failed: Failed) -> ConsensusError:
    """Make the error that an answer speaks of."""
    made = _MADE.get(failed.kind)
    try:
        return Unavailable(failed.text) if made is None else made(failed)
    except IndexError:
        return Unavailable(f"{failed.kind}, without its numbers")

"""What an engine may answer instead of what it was asked for: each says what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = (
    "BeyondEnd",
    "Busy",
    "ConsensusError",
    "Fenced",
    "InvalidAppend",
    "InvalidSnapshot",
    "Malformed",
    "NotAMember",
    "NotLeader",
    "OutOfSequence",
    "RecordsLost",
    "SequenceReused",
    "StreamLost",
    "Truncated",
    "Unavailable",
    "Unknown",
    "Unsupported",
    "reason_of",
)


class ConsensusError(CogworkError):
    """Something of an engine."""


class NotLeader(ConsensusError):
    """Somebody else takes appends; nothing was appended, and it may be tried there.

    Attributes:
        hint: Who, as far as it is known.
    """

    def __init__(self, hint: str | None = None) -> None:
        where = f"try {hint}" if hint is not None else "nobody is known to, try again later"
        super().__init__(f"this replica does not take appends: {where}")
        self.hint = hint


class Fenced(ConsensusError):
    """The epoch has moved on; nothing was appended, nor will be by whoever holds the old one.

    Attributes:
        epoch: The present one.
    """

    def __init__(self, epoch: int) -> None:
        super().__init__(f"fenced: the stream's epoch is {epoch}; take a new one or stop")
        self.epoch = epoch


class Truncated(ConsensusError):
    """What was asked for has been given up by retention.

    Attributes:
        first: The first offset that is left.
    """

    def __init__(self, first: int) -> None:
        super().__init__(f"the stream begins at offset {first}: read from there")
        self.first = first


class BeyondEnd(ConsensusError, ValueError):
    """The stream has not come so far.

    Attributes:
        offset: What was asked for.
        next: The offset that its next record will have.
    """

    def __init__(self, offset: int, following: int) -> None:
        super().__init__(
            f"offset {offset} is above the stream's end: the next record will have {following}"
        )
        self.offset = offset
        self.next = following


class Unknown(ConsensusError):
    """It is not known whether the append happened.

    With producer id and sequence it may simply be tried again; without, it may then be twice.

    Attributes:
        reason: Why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"it is unknown whether the records were appended: {reason}")
        self.reason = reason


class Busy(ConsensusError):
    """As much is under way as the engine holds at once; nothing was appended, try again later.

    Attributes:
        reason: What is too much.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"too much is under way: {reason}; try again later")
        self.reason = reason


class Unavailable(ConsensusError):
    """The engine cannot be reached or has no majority; nothing was appended.

    Attributes:
        reason: Why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the engine is not available: {reason.rstrip('.')}; try again later")
        self.reason = reason


class NotAMember(Unavailable):
    """No replica is to be made here: those that hold the stream do not count this container.

    Attributes:
        voters: Who does hold it.
    """

    def __init__(self, voters: Sequence[str]) -> None:
        super().__init__(f"it is held by {', '.join(voters)}, and not here")
        self.voters = list(voters)


class StreamLost(Unavailable):
    """What keeps the stream is there, and has it no more; nothing was appended."""


class InvalidAppend(ConsensusError):
    """What was to be appended cannot be: nothing was, and trying again will not help."""


class OutOfSequence(InvalidAppend):
    """Records of the producer are missing before these.

    Attributes:
        expected: The sequence that is next.
        found: The one that came.
    """

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(
            f"the producer's next sequence is {expected}, not {found}: send what is missing first"
        )
        self.expected = expected
        self.found = found


class SequenceReused(InvalidAppend):
    """The producer has used these sequences already, for other records.

    Attributes:
        sequence: The first of them.
    """

    def __init__(self, sequence: int) -> None:
        super().__init__(
            f"the producer's sequence {sequence} was used for another record before: one sequence "
            "is one record, and a producer that has lost count takes a new id"
        )
        self.sequence = sequence


class InvalidSnapshot(ConsensusError):
    """A snapshot that cannot be kept.

    Attributes:
        size_bytes: Its size.
        max_bytes: The largest that is kept.
    """

    def __init__(self, size_bytes: int, max_bytes: int) -> None:
        super().__init__(
            f"the snapshot has {size_bytes} octets, more than the {max_bytes} that are kept: "
            "store it elsewhere, and its address here"
        )
        self.size_bytes = size_bytes
        self.max_bytes = max_bytes


class Malformed(ConsensusError, ValueError):
    """Octets that are not what they should be: damaged, of another version, or somebody else's."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"this is not {what}: {why}")


class RecordsLost(Malformed):
    """What keeps the stream has lost its newest records, which had been read.

    Attributes:
        end: The offset up to which it surely has what was read: below are the same records, and
            from there on are others, or none yet.
    """

    def __init__(self, end: int) -> None:
        super().__init__(
            "the stream that was read before",
            f"what keeps it has lost records from offset {end} on, and gives these offsets to "
            "others: read again from there",
        )
        self.end = end


class Unsupported(ConsensusError):
    """The engine does not declare this."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this engine cannot {what}: see its capabilities")


def reason_of(error: ConsensusError) -> str:
    """Return why something was refused, for those who know already that it was."""
    return error.reason if isinstance(error, Unavailable) else str(error)

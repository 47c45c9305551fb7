"""What an engine may answer instead of what it was asked for: each says what to do about it."""

from __future__ import annotations

from cogwork.amqp.errors import CogworkError

__all__ = (
    "Busy",
    "ConsensusError",
    "Fenced",
    "InvalidAppend",
    "NotLeader",
    "OutOfSequence",
    "SequenceReused",
    "Truncated",
    "Unavailable",
    "Unknown",
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


class Unknown(ConsensusError):
    """It is not known whether the append happened.

    With producer id and sequence it may simply be tried again; without, it may then be twice.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"it is unknown whether the records were appended: {reason}")


class Busy(ConsensusError):
    """As much is under way as the engine holds at once; nothing was appended, try again later."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"too much is under way: {reason}; try again later")


class Unavailable(ConsensusError):
    """The engine cannot be reached or has no majority; nothing was appended."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the engine is not available: {reason}; try again later")


class InvalidAppend(ConsensusError):
    """What was to be appended cannot be: nothing was, and trying again will not help."""


class OutOfSequence(InvalidAppend):
    """Records of the producer are missing before these.

    Attributes:
        expected: The sequence that is next.
    """

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(
            f"the producer's next sequence is {expected}, not {found}: send what is missing first"
        )
        self.expected = expected


class SequenceReused(InvalidAppend):
    """The producer has used these sequences already, for other records."""

    def __init__(self, sequence: int) -> None:
        super().__init__(
            f"the producer's sequence {sequence} was used for another record before: one sequence "
            "is one record, and a producer that has lost count takes a new id"
        )

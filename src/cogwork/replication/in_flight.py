"""What an outbox has sent: the commands, and which of them went together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cogwork.plugin.engine.commands import Append
from cogwork.plugin.engine.errors import Malformed, OutOfSequence
from cogwork.replication.calls import Failed, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.plugin.engine.sequencer import Command

__all__ = ("InFlight", "Pending")


class Pending(msgspec.Struct, eq=False):
    """A command that is not answered.

    Attributes:
        token: The owner's.
        command: What is to be done.
        since_s: When it came.
        size_bytes: What it counts.
        is_own: Whether the outbox has numbered it.
        numbered_in: The round in which it got its present number.
        copies: Those that may have been applied, or will yet be.
        is_done: Whether it is answered, and waits for those before it.
        is_held: Whether no more copies of it are sent for now.
        last_call: The number of the call with its last copy.
        data: The command, encoded.
    """

    token: object
    command: Command
    since_s: float
    size_bytes: int
    is_own: bool = False
    numbered_in: int = 0
    copies: int = 0
    is_done: bool = False
    is_held: bool = False
    last_call: int = 0
    data: bytes = b""


class InFlight(msgspec.Struct, eq=False):
    """A call in flight.

    Attributes:
        round: In which round it was sent.
        sent_s: When.
        size_bytes: What its commands take.
        commands: Those in it.
    """

    round: int
    sent_s: float
    size_bytes: int
    commands: list[Pending] = msgspec.field(default_factory=list)

    def take_back(self) -> None:
        """Take note that none of its commands will be applied by it."""
        for pending in self.commands:
            pending.copies -= 1

    def demand_results(self, results: Sequence[Place | Failed | int]) -> None:
        """See that these can be what became of its commands.

        Raises:
            Malformed: They are too few, too many, or the answers to other commands.
        """
        what, count = "an answer to these commands", len(self.commands)
        if len(results) != count:
            raise Malformed(what, f"there are {len(results)} results of {count}")
        for pending, result in zip(self.commands, results, strict=True):
            if not _fits(pending.command, result):
                name = type(pending.command).__name__
                raise Malformed(what, f"the result of {name} is {result!r:.100}")


def _fits(command: Command, result: Place | Failed | int) -> bool:
    if isinstance(command, Append):
        return not isinstance(result, int)
    if isinstance(result, Failed):
        return result.kind != OutOfSequence.__name__  # that speaks of a producer
    return isinstance(result, int)

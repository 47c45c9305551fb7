"""Who is to hold a stream's replicas, and who may still hold one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Placement",)


class Placement(msgspec.Struct, frozen=True, array_like=True):
    """Where a stream is.

    Attributes:
        voters: Who is to hold it, in order of leader priority.
        learners: Who is to have a copy that counts for nothing.
        founders: Who was to hold it when it was made.
        former: Who may still hold a replica, and is to give it up when the move is done.
        move: How often it was moved.
        settled: The last move that is done.
        term: Of an entry that was committed when that was.
        index: Of that entry; 0 before.
    """

    voters: list[str]
    learners: list[str] = []
    founders: list[str] = []
    former: list[str] = []
    move: int = 0
    settled: int = 0
    term: int = 0
    index: int = 0

    @property
    def holders(self) -> list[str]:
        """All that may hold a replica, those that are to first."""
        return list(dict.fromkeys((*self.voters, *self.learners, *self.former)))

    @property
    def is_settled(self) -> bool:
        """Whether no move is under way."""
        return self.settled == self.move

    @property
    def floor(self) -> tuple[int, int]:
        """Term and index of an entry that whoever leads from now on has."""
        return self.term, self.index

    def first_voters(self, own: str) -> list[str]:
        """Return the members that a container's new replica begins with; none where it joins.

        Once a move is done, a founder may have given its replica up: it is none any more.
        """
        return list(self.founders) if own in self.founders and not self.settled else []

    def moved(self, voters: Sequence[str], learners: Sequence[str]) -> Placement:
        """Return it with others that are to hold the stream."""
        wanted = {*voters, *learners}
        return msgspec.structs.replace(
            self,
            voters=list(voters),
            learners=list(learners),
            former=[each for each in self.holders if each not in wanted],
            move=self.move + 1,
        )

    def done(self, floor: tuple[int, int]) -> Placement:
        """Return it with the move at its end."""
        term, index = max(floor, self.floor)
        return msgspec.structs.replace(self, former=[], settled=self.move, term=term, index=index)

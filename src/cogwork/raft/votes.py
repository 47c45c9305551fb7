"""Votes of one election."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.raft.membership import Membership

__all__ = ("Votes",)


class Votes:
    """Who has answered how; the first answer of each counts."""

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: dict[str, bool] = {}

    def note(self, voter: str, *, is_granted: bool) -> None:
        """Note an answer."""
        self._answers.setdefault(voter, is_granted)

    def has_won(self, membership: Membership) -> bool:
        """Return whether a majority is for it."""
        return membership.is_quorum({each for each, granted in self._answers.items() if granted})

    def has_lost(self, membership: Membership) -> bool:
        """Return whether no majority can be for it any more."""
        against = {each for each, granted in self._answers.items() if not granted}
        return not membership.is_quorum(membership.all_voters - against)

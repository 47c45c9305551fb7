"""A change of the members, in steps that each are safe (Raft §6; dissertation §4.2.1, §4.3).

1. Members that are new come in as learners, and are brought up to date.
2. Once they are, the joint membership goes into the log: from there on a majority of the old voters
   and one of the new ones are needed.
3. Once that is committed, the new membership follows.

Where the voters stay the same, one entry does it. A leader that finds a joint membership that
another one has begun completes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.consensus.errors import Busy
from cogwork.consensus.raft.entries import Kind
from cogwork.consensus.raft.membership import Membership

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.consensus.raft.core import Core

__all__ = ("Changes",)


class Changes:
    """The change that a leader is making, if any."""

    __slots__ = ("_core", "_target", "_until_s")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._target: Membership | None = None
        self._until_s = 0.0

    @property
    def is_under_way(self) -> bool:
        """Whether there is one, of this leader or of one before."""
        core = self._core
        return (
            self._target is not None
            or core.membership.is_joint
            or core.membership_index > core.commit
        )

    def begin(self, target: Membership) -> None:
        """Begins a change.

        Raises:
            Busy: Another one is under way.
            ValueError: There can be no such membership.
        """
        target.check()
        core = self._core
        if self.is_under_way:
            raise Busy("the members are just being changed")
        present = core.membership
        newcomers = [each for each in target.voters if each not in present.everyone]
        first = Membership(present.voters, (*present.learners, *newcomers))
        first.check()
        self._target = target
        self._until_s = core.now_s + core.settings.catch_up_s
        self._write(first)

    def step(self, is_caught_up: Callable[[str], bool]) -> None:
        """Takes the next step where it can be taken.

        Args:
            is_caught_up: Tells whether a member has about all entries.
        """
        core = self._core
        if core.membership_index > core.commit:
            return
        present = core.membership
        if present.is_joint:
            self._write(Membership(present.voters, present.learners))
        elif self._target is not None:
            self._aim(present, self._target, is_caught_up)

    def _aim(
        self, present: Membership, target: Membership, is_caught_up: Callable[[str], bool]
    ) -> None:
        core = self._core
        if core.now_s >= self._until_s:
            core.report(f"{', '.join(target.voters)} do not become voters: they lag behind")
            self._target = None
        elif set(target.voters) == set(present.voters):
            self._target = None
            self._write(target)
        elif all(is_caught_up(voter) for voter in target.voters if voter != core.own):
            self._target = None
            self._write(Membership(target.voters, target.learners, present.voters))

    def _write(self, membership: Membership) -> None:
        if membership != self._core.membership:
            self._core.append(Kind.MEMBERS, membership.to_bytes())

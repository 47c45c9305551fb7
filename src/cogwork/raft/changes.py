"""A change of the members, in steps that each are safe (Raft §6; dissertation §4.2.1, §4.3).

1. Members that are new come in as learners, and are brought up to date.
2. Once they are, and with them a majority of the voters to be, the joint membership goes into the
   log: from there on a majority of the old voters and one of the new ones are needed.
3. Once that is committed, the new membership follows.

Until the second step nothing is decided, and another change may take the place of this one.

Where the voters stay the same, one entry does it. A leader that finds a joint membership that
another one has begun completes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import Busy
from cogwork.raft.entries import Kind
from cogwork.raft.membership import Membership

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.raft.core import Core
    from cogwork.raft.progress import Progress

__all__ = ("Changes",)


class Changes:
    """The change that a leader is making, if any."""

    __slots__ = ("_core", "_goal", "_goal_s", "_progress", "_target", "_told", "_until_s")

    def __init__(self, core: Core, progress: Mapping[str, Progress]) -> None:
        self._core = core
        self._progress = progress
        self._target: Membership | None = None
        self._told: Membership | None = None
        self._until_s = 0.0
        self._goal = 0
        self._goal_s = 0.0

    @property
    def is_under_way(self) -> bool:
        """Whether there is one, of this leader or of one before."""
        return self._target is not None or self._is_unsettled

    @property
    def _is_unsettled(self) -> bool:
        core = self._core
        return core.membership.is_joint or core.membership_index > core.commit

    def begin(self, target: Membership) -> None:
        """Begin a change, instead of one whose new voters are still catching up.

        To ask for it again while that lasts changes nothing.

        Raises:
            Busy: Another one is under way.
            ValueError: There can be no such membership.
        """
        target.check()
        core = self._core
        if target == self._target:
            return
        if self._is_unsettled:
            raise Busy("the members are just being changed")
        present = core.membership
        newcomers = [each for each in target.voters if each not in present.everyone]
        first = Membership(present.voters, (*present.learners, *newcomers))
        first.check()
        self._target = target
        self._until_s = core.now_s + core.settings.catch_up_s
        self._set_goal()
        self._write(first)

    def step(self, has_reached: Callable[[str, int], bool]) -> None:
        """Take the next step where it can be taken.

        Args:
            has_reached: Tells whether a member is there and has all entries up to an index.
        """
        core = self._core
        if core.membership_index > core.commit:
            return
        present = core.membership
        if present.is_joint:
            self._write(Membership(present.voters, present.learners))
        elif self._target is not None:
            self._aim(present, self._target, has_reached)

    def _aim(
        self, present: Membership, target: Membership, has_reached: Callable[[str, int], bool]
    ) -> None:
        core, goal = self._core, self._goal
        ready = {voter for voter in target.voters if voter == core.own or has_reached(voter, goal)}
        late = [voter for voter in target.voters if voter not in {*present.voters, *ready}]
        if set(target.voters) == set(present.voters):
            self._target = None
            self._write(target)
        elif not late and target.is_quorum(ready):
            self._target = None
            self._write(Membership(target.voters, target.learners, present.voters))
        elif core.now_s >= self._until_s:
            self._tell(target, late)
            self._target = None
        elif core.now_s >= self._goal_s + core.election_s:
            self._set_goal()

    def _tell(self, target: Membership, late: list[str]) -> None:
        """Say who is waited for, once: who wants the change asks for it again and again."""
        if target == self._told:
            return
        self._told = target
        matches = (f"{voter} has {self._match_of(voter)} of {self._goal} entries" for voter in late)
        who = ", ".join(matches) or "a majority of the new voters is not connected"
        self._core.report(f"the membership changes once the new members have caught up: {who}")

    def _match_of(self, voter: str) -> int:
        progress = self._progress.get(voter)
        return 0 if progress is None else progress.match

    def _set_goal(self) -> None:
        """Have new voters reach what is committed now.

        One that does so within an election time is no further behind than that (dissertation
        §4.2.1): where commands come without a pause, nobody ever has everything.
        """
        self._goal, self._goal_s = self._core.commit, self._core.now_s

    def _write(self, membership: Membership) -> None:
        if membership != self._core.membership:
            self._core.append(Kind.MEMBERS, membership.to_bytes())

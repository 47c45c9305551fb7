"""Leader priority: the first voter in the membership that is available and caught up should lead.

Members may be barred from leading. They vote as ever, and stand for election after all others: one
of them may be the only one that has what is committed, and then nobody else could be elected. It
hands over as soon as somebody else has caught up.

It never overrides what Raft decides: the leader merely hands over to a member of higher priority
that has the whole log. And it is damped: that member must have been there, with everything, for a
time that doubles with each change of leader that was seen lately, so that one that comes and goes
does not take the lead each time it comes.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.raft.core import Core

__all__ = ("LeaderChanges", "LeaderPriority")

CHANGES_MAX = 6
"""Changes that count: the time is at most 2⁵ times as long, as the first is the usual one."""

MEMORY_SHARE = 64
"""A change is forgotten after so many times the undamped time."""


class LeaderChanges:
    """When leaders changed, as seen from here."""

    __slots__ = ("_at_s",)

    def __init__(self) -> None:
        self._at_s: deque[float] = deque(maxlen=CHANGES_MAX)

    def note(self, now_s: float) -> None:
        """Note one."""
        self._at_s.append(now_s)

    def hold_s(self, priority_hold_s: float, now_s: float) -> float:
        """Return how long a member of higher priority must have been there."""
        recent = sum(now_s - at_s < MEMORY_SHARE * priority_hold_s for at_s in self._at_s)
        return priority_hold_s * float(2 ** max(0, recent - 1))


class LeaderPriority:
    """What a leader knows of those of higher priority."""

    __slots__ = ("_candidate", "_core", "_since_s")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._candidate: str | None = None
        self._since_s = core.now_s

    def due_s(self, hold_s: float) -> float:
        """Return when a member of higher priority is to lead; infinity while nobody is there."""
        return inf if self._candidate is None else self._since_s + hold_s

    def look(self, is_ready: Callable[[str], bool], hold_s: float) -> str | None:
        """Return who should lead instead, where it is time.

        Args:
            is_ready: Tells whether a voter is there and has everything.
            hold_s: For how long it must have been.
        """
        core = self._core
        voters = core.membership.voters
        if core.own in core.barred:
            before, hold_s = voters, 0.0
        else:
            before = voters[: core.membership.rank(core.own)]
        candidates = (voter for voter in before if voter not in core.barred)
        candidate = next((voter for voter in candidates if is_ready(voter)), None)
        if candidate != self._candidate:
            self._candidate = candidate
            self._since_s = core.now_s
        if core.now_s < self.due_s(hold_s):
            return None
        self._since_s = core.now_s
        return candidate

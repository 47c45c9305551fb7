"""Who holds an old file of the write-ahead log, and what becomes of what it has there.

Theory of operation. The log asks all groups of its oldest file at once. Who has little there writes
it once more: some of them, then others have their turn. Who has more seals it. To seal takes a
group part of a millisecond of the event loop, new files, and synchronisations that others wait
behind: a thousand groups would hold up everybody for seconds. So a few seal at a time, and as each
has done so the next one begins. Where no replica is at work, what is kept of it is written once
more, too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.consensus.replicated.alarm import Alarm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.consensus.replicated.member import Member

__all__ = ("RENEWED_TOGETHER", "SEALED_TOGETHER", "Pressure")

SEALED_TOGETHER = 2
"""So many groups seal at a time because the log asks them to."""

RENEWED_TOGETHER = 4
"""So many write what they have once more without a pause: that takes a millisecond at most."""

PAUSE_S = 0.003
"""So long others have their turn then."""


class Pressure:
    """The groups that were asked, in that order."""

    def __init__(
        self,
        members: Mapping[int, Member],
        stop: Callable[[int, Exception], None],
        renew: Callable[[int], object],
    ) -> None:
        """Has asked nobody.

        Args:
            members: The replicas that are open, by their groups.
            stop: Has the replica of a group stop that fails at what it is to do.
            renew: Has what is kept of a group written once more, where its replica does nothing.
        """
        self._members = members
        self._stop = stop
        self._renew = renew
        self._asked: dict[int, None] = {}
        self._sealing: set[int] = set()
        self._renewed = 0
        self._pause = Alarm(self._go_on_anew)
        self._is_going_on = False

    def close(self) -> None:
        """Has nobody do anything any more."""
        self._asked.clear()
        self._pause.cancel()

    def ask(self, group: int) -> None:
        """Has a group do without the old file as soon as it is its turn."""
        self._asked[group] = None
        self._go_on()

    def ended(self, group: int) -> None:
        """Takes note that a group seals no more, whoever had it do so, and however that ended."""
        self._sealing.discard(group)
        self._go_on()

    def _go_on_anew(self) -> None:
        self._renewed = 0
        self._go_on()

    def _go_on(self) -> None:
        if self._is_going_on or self._pause.is_set:
            return  # one that could not even begin has ended in the loop below
        self._is_going_on = True
        try:
            while self._asked and len(self._sealing) < SEALED_TOGETHER:
                if self._renewed >= RENEWED_TOGETHER:
                    now_s = time.monotonic()
                    self._pause.set(now_s + PAUSE_S, now_s)
                    break
                group = next(iter(self._asked))
                del self._asked[group]
                if group in self._members:
                    self._renewed += self._begin(group)
                else:
                    self._renew(group)
        finally:
            self._is_going_on = False

    def _begin(self, group: int) -> bool:
        """Has a group write what it has once more, or begin to seal it; returns which of them."""
        member, is_renewed, has_begun = self._members[group], False, False
        self._sealing.add(group)
        try:
            is_renewed = member.renew()
            has_begun = not is_renewed and member.seal()
        except Exception as error:  # it is its turn because of another one, or before that one
            self._stop(group, error)
        if not has_begun:
            self._sealing.discard(group)
        return is_renewed

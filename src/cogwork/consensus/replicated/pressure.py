"""Who holds an old file of the write-ahead log, and seals what it has there.

Theory of operation. The log asks all groups of its oldest file at once. To seal takes a group part
of a millisecond of the event loop, new files, and synchronisations that others wait behind: a
thousand groups would hold up everybody for seconds. So a few seal at a time, and as each has done
so the next one begins. Where no replica is at work, what is kept of it is written once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.consensus.replicated.member import Member

__all__ = ("SEALED_TOGETHER", "Pressure")

SEALED_TOGETHER = 2
"""So many groups seal at a time because the log asks them to."""


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
        self._is_going_on = False

    def ask(self, group: int) -> None:
        """Has a group seal as soon as it is its turn."""
        self._asked[group] = None
        self._go_on()

    def ended(self, group: int) -> None:
        """Takes note that a group seals no more, whoever had it do so, and however that ended."""
        self._sealing.discard(group)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_going_on:
            return  # one that could not even begin has ended in the loop below
        self._is_going_on = True
        try:
            while self._asked and len(self._sealing) < SEALED_TOGETHER:
                group = next(iter(self._asked))
                del self._asked[group]
                if group in self._members:
                    self._begin(group)
                else:
                    self._renew(group)
        finally:
            self._is_going_on = False

    def _begin(self, group: int) -> None:
        self._sealing.add(group)
        has_begun = False
        try:
            has_begun = self._members[group].seal()
        except Exception as error:  # it is its turn because of another one, or before that one
            self._stop(group, error)
        if not has_begun:
            self._sealing.discard(group)

"""Who holds an old file of the write-ahead log, and what becomes of what it has there.

Theory of operation. The log asks all groups of its oldest file at once. Who has little there writes
it once more: a few of them, and the next ones when that is on the disk, for others wait for the
disk, too. Who has more seals it. To seal takes a group part of a millisecond of the event loop, new
files, and synchronisations that others wait behind: a thousand groups would hold up everybody for
seconds. So a few seal at a time, and as each has done so the next one begins. Where no replica is
at work, what is kept of it is written once more, too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.replication.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.log.wal import Wal
    from cogwork.replication.member import Member

__all__ = ("PAUSE_S", "RENEWED_TOGETHER", "SEALED_TOGETHER", "CompactionScheduler")

SEALED_TOGETHER = 2
"""So many groups seal at a time because the log asks them to."""

RENEWED_TOGETHER = 4
"""So many write what they have once more at a time."""

PAUSE_S = 0.003
"""How often it is looked whether that is on the disk."""


class CompactionScheduler:
    """The groups that were asked, in that order."""

    def __init__(
        self,
        wal: Wal | None,
        members: Mapping[int, Member],
        *,
        stop: Callable[[int, Exception], None],
        renew: Callable[[int], object],
    ) -> None:
        """Initialize it; it has asked nobody.

        Args:
            wal: The log; None where there are no replicas.
            members: The replicas that are open, by their groups.
            stop: Has the replica of a group stop that fails at what it is to do.
            renew: Has what is kept of a group written once more, where its replica does nothing.
        """
        self._wal = wal
        self._members = members
        self._stop = stop
        self._renew = renew
        self._asked: dict[int, None] = {}
        self._sealing: set[int] = set()
        self._renewed = 0
        self._renewed_lsn = 0
        self._pause = Timer(self._look_whether_durable)
        self._is_going_on = False
        self._is_closed = False

    def close(self) -> None:
        """Have nobody do anything any more."""
        self._is_closed = True
        self._pause.cancel()

    def ask(self, group: int) -> None:
        """Have a group do without the old file as soon as it is its turn."""
        self._asked[group] = None
        self._go_on()

    def ended(self, group: int) -> None:
        """Take note that a group seals no more, whoever had it do so, and however that ended."""
        self._sealing.discard(group)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_going_on or self._is_closed:
            return  # one that could not even begin has ended in the loop below
        self._is_going_on = True
        try:
            while self._asked and self._may_begin:
                group = next(iter(self._asked))
                del self._asked[group]
                if self._wal is not None and not self._wal.holds_oldest(group):
                    continue  # it was asked again before it had done so
                if group in self._members:
                    self._begin(group)
                else:
                    self._renew(group)
        finally:
            self._is_going_on = False

    @property
    def _may_begin(self) -> bool:
        return len(self._sealing) < SEALED_TOGETHER and self._renewed < RENEWED_TOGETHER

    def _begin(self, group: int) -> None:
        """Have a group write what it has once more, or begin to seal it."""
        member, has_begun = self._members[group], False
        self._sealing.add(group)
        try:
            if member.renew():
                self._note_renewed()
            else:
                has_begun = member.seal()
        except Exception as error:  # it is its turn because of another one, or before that one
            self._stop(group, error)
        if not has_begun:
            self._sealing.discard(group)

    def _note_renewed(self) -> None:
        self._renewed += 1
        if self._wal is not None:
            self._renewed_lsn = self._wal.end_lsn
        self._pause_now()

    def _pause_now(self) -> None:
        now_s = time.monotonic()
        self._pause.set(now_s + PAUSE_S, now_s)

    def _look_whether_durable(self) -> None:
        """Go on where what was written once more is on the disk, or nothing gets there now."""
        wal = self._wal
        if wal is not None and wal.durable_lsn < self._renewed_lsn and not wal.takes_nothing:
            wal.flush()
            self._pause_now()
            return
        self._renewed = 0
        self._go_on()

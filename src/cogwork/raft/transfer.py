"""The leader hands over (dissertation §3.10).

It takes nothing new, brings one voter up to date, and has it stand for election at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.messages import TimeoutNow
from cogwork.raft.ready import TransferEnded

if TYPE_CHECKING:
    from cogwork.raft.core import Core

__all__ = ("Transfer",)


class Transfer:
    """One attempt.

    Attributes:
        to: Who is to lead.
    """

    __slots__ = ("_core", "_is_asked", "_until_s", "to")

    def __init__(self, core: Core, to: str) -> None:
        self.to = to
        self._core = core
        self._until_s = core.now_s + core.election_s
        self._is_asked = False

    @property
    def is_over(self) -> bool:
        """Whether it has taken too long, and the leader goes on."""
        return self._core.now_s >= self._until_s

    def look(self, match: int) -> None:
        """Have the voter stand for election once it has everything."""
        core = self._core
        if match == core.log.last_index and not self._is_asked:
            self._is_asked = True
            core.outbox.send(self.to, TimeoutNow(core.term))

    def end(self, *, is_done: bool) -> None:
        """Tell how it ended."""
        self._core.events.append(TransferEnded(self.to, is_done))

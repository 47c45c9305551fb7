"""File descriptors: connections leave a reserve of them to logs, journals and what is loaded late.

The kernel gives out the lowest free number, so the number of a new connection says how full the
table is. A connection that would take from the reserve is closed at once: its client hears so and
may try elsewhere, where it would otherwise wait for an answer that never comes.
"""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Descriptors",)

RESERVE_MAX = 64
"""Enough for the files of a log, its segments and a listing of plug-ins at once."""

RESERVE_SHARE = 8
"""A small table keeps a part of it: one eighth."""

TELL_EVERY_S = 60.0
"""So often, at most, running out is told."""


class Descriptors:
    """Decides whether there is a descriptor for one more connection.

    Attributes:
        limit: How many the process may have.
        reserved: How many of them connections may not take.
        refused: Connections that were refused.
    """

    def __init__(self, tell: Callable[[str], None], limit: int | None = None) -> None:
        """Take the limit of the process.

        Args:
            tell: Hears, in a sentence, that descriptors have run out.
            limit: Another limit.
        """
        self.limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
        self.reserved = min(RESERVE_MAX, self.limit // RESERVE_SHARE)
        self.refused = 0
        self._tell = tell
        self._told_s: float | None = None

    def admits(self, descriptor: int) -> bool:
        """Say whether a connection may keep its descriptor; one that may not is counted and told.

        Args:
            descriptor: Of the new connection; negative if there was none left for it.
        """
        if 0 <= descriptor < self.limit - self.reserved:
            return True
        self.refused += 1
        now_s = time.monotonic()
        if self._told_s is None or now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            self._tell(
                f"no file descriptor is left for connections: {self.limit} are allowed, of which "
                f"{self.reserved} are kept for files; {self.refused} connections refused so far "
                "(raise the limit: LimitNOFILE, or ulimit -n)"
            )
        return False

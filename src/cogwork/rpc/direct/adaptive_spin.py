"""Looks for the reply to a direct call for a moment before the caller sleeps.

Theory of operation. A server that does little has answered before the caller is asleep and awake
again: both ends of a wake-up cost more than the method does. So a caller whose call is the only one
under way reads the connection again and again for a moment. Where that does not help, as the
methods take longer, it is tried less and less often: once in 64 calls in the end, so that it costs
a caller of slow methods a sixty-fourth of what it waits, at most.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cogwork.io.turn import Waiter
    from cogwork.rpc.client_context import OwnConnection

__all__ = ("AdaptiveSpin",)

MISSES_MAX = 6
"""Failures in a row that count: after so many, 2 to this power of calls go without a try."""

MICROSECONDS = 1e-6


class AdaptiveSpin:
    """Decides whether to look, and does it. One a connection."""

    def __init__(self, client: OwnConnection, spin_us: int) -> None:
        """Initialize it; it has not looked yet.

        Args:
            client: The connection.
            spin_us: For how long at most, in microseconds; 0 never.
        """
        self._client = client
        # With one processor, the server would only be kept from answering.
        self._spin_s = spin_us * MICROSECONDS if _processors() > 1 else 0.0
        self._misses = 0
        self._skips = 0

    def look(self, waiter: Waiter[Any]) -> bool:
        """Wait a moment for what was asked; return whether it has come."""
        if self._skips or not self._spin_s:
            self._skips -= 1
            return False
        wire = self._client.wire
        if wire is None:
            return False
        if self._client.turn.spin(wire, waiter, self._spin_s):
            self._misses = 0
            return True
        self._misses = min(self._misses + 1, MISSES_MAX)
        self._skips = 1 << self._misses
        return False


def _processors() -> int:
    """Count the processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1

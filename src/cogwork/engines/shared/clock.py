"""What a writer takes from the world: the time, and chance."""

from __future__ import annotations

import os
import time

__all__ = ("Clock",)


class Clock:
    """The computer's own."""

    def time_ms(self) -> int:
        """Return the milliseconds since 1970 (UTC)."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> bytes:
        """Return eight octets that nobody else has."""
        return os.urandom(8)

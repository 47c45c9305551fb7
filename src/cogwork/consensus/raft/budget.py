"""How much may be on the way to one container, of all its groups together."""

from __future__ import annotations

__all__ = ("Budget",)


class Budget:
    """Octets on the way; shared by all groups of a container that send to one neighbour.

    Attributes:
        is_awaited: Somebody wanted to send and could not.
    """

    __slots__ = ("_limit_bytes", "_used_bytes", "is_awaited")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self.is_awaited = False

    @property
    def has_room(self) -> bool:
        """Whether one more message may go."""
        return self._used_bytes < self._limit_bytes

    def wait(self) -> bool:
        """Notes that somebody waits for room; returns that there is none."""
        self.is_awaited = True
        return False

    def take(self, size_bytes: int) -> None:
        """Counts what goes."""
        self._used_bytes += size_bytes

    def give(self, size_bytes: int) -> None:
        """Counts what has come, or is given up."""
        self._used_bytes -= size_bytes
        assert self._used_bytes >= 0

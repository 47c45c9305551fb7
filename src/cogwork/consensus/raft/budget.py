"""How much may be on the way to one container, of all its groups together."""

from __future__ import annotations

__all__ = ("Budget", "Share")


class Budget:
    """Octets on the way, and who waits until they are less.

    Attributes:
        waiting: Groups that wanted to send and could not.
    """

    __slots__ = ("_limit_bytes", "_used_bytes", "waiting")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self.waiting: set[int] = set()

    @property
    def has_room(self) -> bool:
        """Whether one more message may go."""
        return self._used_bytes < self._limit_bytes

    def take(self, size_bytes: int) -> None:
        """Counts what goes."""
        self._used_bytes += size_bytes

    def give(self, size_bytes: int) -> None:
        """Counts what has come, or is given up."""
        self._used_bytes -= size_bytes
        assert self._used_bytes >= 0


class Share:
    """A group's access to a budget."""

    __slots__ = ("_budget", "_group")

    def __init__(self, budget: Budget, group: int = 0) -> None:
        self._budget = budget
        self._group = group

    def has_room(self) -> bool:
        """Tells whether one more message may go; if not, the group waits."""
        if self._budget.has_room:
            return True
        self._budget.waiting.add(self._group)
        return False

    def take(self, size_bytes: int) -> None:
        """Counts what goes."""
        self._budget.take(size_bytes)

    def give(self, size_bytes: int) -> None:
        """Counts what has come, or is given up."""
        self._budget.give(size_bytes)

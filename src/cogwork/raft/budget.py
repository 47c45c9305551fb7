"""How much may be on the way to one container, of all its groups together."""

from __future__ import annotations

__all__ = ("Budget", "Share")


class Budget:
    """Octets on the way, and who waits until they are less.

    Attributes:
        limit_bytes: How many there may be before the next message.
        used_bytes: How many there are.
        waiting: Groups that wanted to send and could not.
    """

    __slots__ = ("limit_bytes", "used_bytes", "waiting")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.waiting: set[int] = set()

    @property
    def has_room(self) -> bool:
        """Whether one more message may go."""
        return self.used_bytes < self.limit_bytes


class Share:
    """A group's access to a budget."""

    __slots__ = ("_budget", "_group")

    def __init__(self, budget: Budget, group: int = 0) -> None:
        self._budget = budget
        self._group = group

    def has_room(self) -> bool:
        """Return whether one more message may go; if not, the group waits."""
        budget = self._budget
        if budget.used_bytes < budget.limit_bytes:
            return True
        budget.waiting.add(self._group)
        return False

    def take(self, size_bytes: int) -> None:
        """Count what goes."""
        self._budget.used_bytes += size_bytes

    def give(self, size_bytes: int) -> None:
        """Count what has come, or is given up."""
        self._budget.used_bytes -= size_bytes
        assert self._budget.used_bytes >= 0

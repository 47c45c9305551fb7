"""A queue's node, as `$management` sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.dead_letters import as_moved, origin_of, revived

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.plugin.capabilities import Storing

__all__ = ("ManagedQueue",)


class ManagedQueue:
    """Looks into a queue and takes items out; see `cogwork.plugin.management.ManagedQueue`."""

    def __init__(self, node: Storing) -> None:
        """Change nothing yet.

        Args:
            node: The queue.
        """
        self._node = node
        self._store = node.store

    def peek(self, count: int, offset: int = 0) -> Sequence[tuple[bytes, Mapping[str, object]]]:
        """Return items, encoded and with facts about each, and leave them where they are."""
        return self._store.peek(count, offset)

    def purge(self, count: int) -> int:
        """Drop items that no consumer holds; return how many."""
        return self._store.purge(count)

    def take_ready(self, count: int) -> Sequence[tuple[int, bytes]]:
        """Put the first messages that are ready aside; return them, numbered and encoded.

        Their delays are over, and nobody is to take them for duplicates where they are sent.
        """
        numbers: list[int] = []
        messages = self._store.take_ready(count, numbers)
        return list(zip(numbers, map(as_moved, messages), strict=True))

    def moved(self, number: int) -> None:
        """Give up what was put aside."""
        self._node.give_up(number, self.put_back)

    def put_back(self, number: int) -> None:
        """Have what was put aside back, as the last one."""
        self._store.enter_again([number])

    def routed_back(self, message: bytes) -> tuple[str | None, bytes]:
        """Return where a dead letter came from, and how it looked before."""
        origin = origin_of(message)
        return origin, revived(message) if origin is not None else message

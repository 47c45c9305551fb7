"""A queue's node, as `$management` sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.nodes.queue.dead_letters import origin_of, revived

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.nodes.queue import QueueNode

__all__ = ("ManagedQueue",)


class ManagedQueue:
    """Looks into a queue and takes items out; see `cogwork.spi.management.ManagedQueue`."""

    def __init__(self, node: QueueNode) -> None:
        """Changes nothing yet.

        Args:
            node: The queue.
        """
        self._store = node.store

    def peek(self, count: int, offset: int = 0) -> Sequence[tuple[bytes, Mapping[str, object]]]:
        """Returns items, encoded and with facts about each, and leaves them where they are."""
        return self._store.peek(count, offset)

    def purge(self, count: int) -> int:
        """Drops items that no consumer holds; returns how many."""
        return self._store.purge(count)

    def take_ready(self, count: int) -> Sequence[bytes]:
        """Takes the first messages that are ready out of the queue; returns them encoded."""
        return self._store.take_ready(count)

    def put(self, message: bytes) -> None:
        """Stores a message that was taken from here, as the last one."""
        self._store.put(message)

    def routed_back(self, message: bytes) -> tuple[str | None, bytes]:
        """Tells where a dead letter came from, and how it looked before."""
        origin = origin_of(message)
        return origin, revived(message) if origin is not None else message

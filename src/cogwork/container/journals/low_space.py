"""What queues on disk do while there is no space for another file of the log.

Theory of operation. The log says so while it still has what is left of its present file. From then
on queues take no messages, and what is left is for what frees space: deliveries and settlements. A
queue that holds the oldest file writes what it still has anew once that is little enough, and
streams seal theirs, so that the file becomes the next one. So consumers alone empty a full disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.container.journals.queue_journal import QueueJournal
    from cogwork.log.wal import Wal

__all__ = ("LowSpace",)

ITEM_BYTES = 100
"""What an item takes in a checkpoint beside its message, and a remembered message-id, about."""

MEMORY_BYTES = 5 << 18
"""What a queue's remembered confirmations take, at most."""


PRESS_EVERY = 10
"""Attempts to make a file, one a second: streams are asked to seal seldom, for each says so that it
cannot."""


class LowSpace:
    """Watches over what is left. Owned by the journals.

    Attributes:
        is_low: Whether there is no space for another file.
    """

    def __init__(self, queues: Mapping[int, QueueJournal]) -> None:
        """Initialize it; it sees no want of space.

        Args:
            queues: By their group in the log, as they come and go.
        """
        self.is_low = False
        self._queues = queues
        self._others_in = 0

    def take(self, wal: Wal, press: Callable[[int], None], is_low: bool) -> None:
        """Take note of whether there is space, once more while there is none.

        Args:
            wal: The log.
            press: Has a group write anew what it needs of the log.
            is_low: Whether there is none.
        """
        if is_low != self.is_low:
            self.is_low = is_low
            for queue in self._queues.values():
                if queue.journal is not None:
                    queue.journal.is_low = is_low
                if not is_low:
                    queue.store.reopen()
        self._others_in = max(0, self._others_in - 1)
        if is_low:
            self._make_space(wal, press)

    def _make_space(self, wal: Wal, press: Callable[[int], None]) -> None:
        """Have those who hold the oldest file write anew what they have, where that is little."""
        groups = wal.oldest_groups()
        queues = [queue for each in groups if (queue := self._queues.get(each)) is not None]
        if 2 * sum(map(_size_of, queues)) > wal.room_bytes:
            return
        for group in groups:
            if group in self._queues or not self._others_in:
                press(group)
        self._others_in = self._others_in or PRESS_EVERY


def _size_of(queue: QueueJournal) -> int:
    """Estimate what a queue's checkpoint takes."""
    items = queue.store.items
    seen = queue.journal.seen if queue.journal is not None else None
    count = items.depth - items.pages.count + items.aside_count + len(seen or ())
    return items.memory_bytes + count * ITEM_BYTES + MEMORY_BYTES

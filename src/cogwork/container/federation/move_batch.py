"""Items of a queue that are moved together, and what is known of them on the way.

The queue may be deleted while they are on it. Its store is closed then, and its items are nobody's:
none of them is given up, or put back.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.container.federation.move_link import MovedItem, MoveError
from cogwork.dataplane.queue.item_history import take_away

if TYPE_CHECKING:
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.capabilities import Shareable

__all__ = ("Batch", "DeletedError", "Stuck", "Unfit", "demand_there", "is_there")


class DeletedError(MoveError):
    """The queue was deleted while its items were moved."""


def is_there(vhost: VirtualHost, node: Shareable) -> bool:
    """Return whether a queue is still there: one of the same name may have taken its place."""
    return vhost.nodes.get(node.address) is node


def demand_there(vhost: VirtualHost, node: Shareable) -> None:
    """Look whether a queue is still there.

    Raises:
        DeletedError: It is not.
    """
    if not is_there(vhost, node):
        raise DeletedError(f"{node.address!r} was deleted")


class Batch:
    """Items that are moved together.

    Attributes:
        items: They, by the numbers by which the other container knows them.
    """

    def __init__(self, node: Shareable, count: int, first: int, *, is_delayed: bool) -> None:
        taken = take_away(node.store, count, is_delayed)
        self.items: dict[int, MovedItem] = {}
        self._number_of: dict[int, int] = {}
        for at, (number, *item) in enumerate(taken, first + 1):
            self.items[at] = MovedItem._make(item)
            self._number_of[at] = number

    @property
    def numbers(self) -> list[int]:
        """By which the queue knows what is put aside of it."""
        return list(self._number_of.values())

    def drop(self, number: int) -> int:
        """Take an item out; return the queue's number of it."""
        del self.items[number]
        return self._number_of.pop(number)


class Stuck:
    """Items that were given up to a container that has not activated them.

    Attributes:
        vhost: Where the queue is.
        node: The queue.
        target: That container.
        batch: The items.
    """

    def __init__(
        self, vhost: VirtualHost, node: Shareable, target: str | None, batch: Batch
    ) -> None:
        self.vhost = vhost
        self.node = node
        self.target = target
        self.batch = batch
        self._since_s = time.monotonic()

    def is_over(self, limit_s: float) -> bool:
        """Return whether that was so long ago."""
        return time.monotonic() - self._since_s > limit_s

    @property
    def is_in_doubt(self) -> bool:
        """Whether it is waited for no longer."""
        node = self.node
        return (node.is_on_disk or node.store.redelivers_in_doubt) and self.has_waited

    @property
    def has_waited(self) -> bool:
        """Whether that was as long ago as a queue waits for one that may come back."""
        return self.is_over(self.node.store.in_doubt_timeout_s)

    def give_up(self, numbers: list[int]) -> None:
        """Have the queue forget what is another container's now, by its own numbers."""
        if is_there(self.vhost, self.node):
            self.node.store.moved(numbers)

    def put_back(self) -> None:
        """Have the queue offer the items again."""
        if is_there(self.vhost, self.node):
            self.node.store.enter_again(self.batch.numbers)


class Unfit:
    """Items of a queue that stay, as they can never be taken elsewhere.

    Attributes:
        numbers: By which the queue knows them; they are aside.
        why: For people.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.why = ""

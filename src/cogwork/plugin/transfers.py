"""Items on their way from one queue to other addresses, a few at a time.

Theory of operation. Items are put aside and sent like any message; what its address does not accept
goes back. So an item goes to consumers at one place only, one at the new address may have it before
the last one has left, and what no address has accepted yet stays on the disk of a queue that has
one. Few are on their way at once: what an address without consumers holds is bounded by that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from cogwork.plugin.management import ManagedQueue, OnOutcome

    SendItem = Callable[[str, bytes, OnOutcome], bool]

__all__ = ("Routed", "Transfers")

SLICE = 100
"""Items taken in one piece of work: some 0.3 ms of small ones."""

WAIT_TICKS = 50
"""For outcomes: five seconds."""


class Routed(NamedTuple):
    """Where an item goes.

    Attributes:
        address: None where it cannot be told; the item then stays.
        message: As it is to be sent.
    """

    address: str | None
    message: bytes


class Transfers:
    """Takes items from one queue and sends each where it belongs.

    Attributes:
        moved: Items that were accepted where they went.
        refused: Items that were not, and went back.
        waiting: Items of which neither is known yet.
    """

    def __init__(
        self,
        send: SendItem,
        queue: ManagedQueue,
        route: Callable[[bytes], Routed],
    ) -> None:
        """Start with none.

        Args:
            send: Sends a message, and tells its outcome; returns False where the address leads
                nowhere.
            queue: Where the items are.
            route: Says where each goes.
        """
        self._send_item = send
        self._queue = queue
        self._route = route
        self._refused: list[int] = []
        self._is_over = False
        self.moved = 0
        self.refused = 0
        self.waiting = 0

    def run(self, count: int) -> Generator[bool, None, None]:
        """Move up to `count` items; yield False where it waits for outcomes."""
        left = count
        while left > 0 and not self.waiting:
            taken = self._queue.take_ready(min(SLICE, left))
            if not taken:
                break
            left -= len(taken)
            for number, message in taken:
                self._send(number, message)
            yield True
            yield from self._wait()
        self._is_over = True
        for number in self._refused:
            self._queue.put_back(number)

    def _wait(self) -> Generator[bool, None, None]:
        for _ in range(WAIT_TICKS):
            if not self.waiting:
                return
            yield False

    def _send(self, number: int, message: bytes) -> None:
        address, outgoing = self._route(message)

        def on_outcome(*, accepted: bool) -> None:
            self.waiting -= 1
            if accepted:
                self.moved += 1
                self._queue.moved(number)
            else:
                self._return(number)

        self.waiting += 1
        if address is None or not self._send_item(address, outgoing, on_outcome):
            on_outcome(accepted=False)

    def _return(self, number: int) -> None:
        """Put an item back, but not while it would be taken at once again."""
        self.refused += 1
        if self._is_over:
            self._queue.put_back(number)
        else:
            self._refused.append(number)

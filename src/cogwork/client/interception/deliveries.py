"""What one receiver has handed over last, to each task or thread that takes from it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.client.interception.interceptors import Endings, Interceptors
    from cogwork.dataplane.message.messages import Message

__all__ = ("Deliveries", "whoever_runs")

Taker = asyncio.Task[object] | threading.Thread


class Deliveries:
    """Tells interceptors what is handed over, and when whoever took it asks for more."""

    def __init__(self, interceptors: Interceptors, address: str) -> None:
        """Have handed over nothing yet.

        Args:
            interceptors: Who is told.
            address: Where the messages come from.
        """
        self._interceptors = interceptors
        self._address = address
        self._endings: dict[Taker, Endings] = {}

    def begin(self, messages: Sequence[Message]) -> None:
        """Messages go to whoever runs now; what it was handed before is over."""
        self.end()
        if messages:
            taker = whoever_runs()
            self._endings[taker] = self._interceptors.deliver(self._address, messages)

    def end(self) -> None:
        """Whoever runs now is done with what it was handed; so are those that have ended."""
        taker = whoever_runs()
        for each in [each for each in self._endings if each is taker or _has_ended(each)]:
            self._endings.pop(each)(None)

    def close(self, error: BaseException | None) -> None:
        """All is over: the receiver is left.

        Args:
            error: What whoever leaves it now leaves it with.
        """
        own = self._endings.pop(whoever_runs(), None)
        if own is not None:
            own(error)
        for ending in self._endings.values():
            ending(None)
        self._endings.clear()


def whoever_runs() -> Taker:
    """Return the task that runs now, or the thread where none does."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.current_thread()


def _has_ended(taker: Taker) -> bool:
    return taker.done() if isinstance(taker, asyncio.Task) else not taker.is_alive()

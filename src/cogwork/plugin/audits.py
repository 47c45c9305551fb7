"""What a queue needs of whoever follows queues, its items and its consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.queue.store import Store
    from cogwork.plugin.node import Subscription

__all__ = ("Audits", "Watch")


class Watch(Protocol):
    """Follows one queue."""

    def consumer(self, serial: int, subscription: Subscription) -> None:
        """Take note of a consumer.

        Args:
            serial: What the store knows it by.
            subscription: Its standing.
        """

    def close(self) -> None:
        """The queue is no more here."""


class Audits(Protocol):
    """Follows queues, as far as the configuration wants that."""

    def watch(
        self, address: str, store: Store, when_durable: Callable[[Callable[[bool], object]], object]
    ) -> Watch | None:
        """Follow a queue from now on; None where nobody wants to know of single items.

        Args:
            address: The queue's.
            store: Its items; without any yet.
            when_durable: Has a call made once it is known whether all so far is durable.
        """

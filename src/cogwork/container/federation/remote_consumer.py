"""A consumer of another container at a shard of this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.states import LinkState
from cogwork.dataplane.link import Ending
from cogwork.plugin.node import Departure

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.dataplane.link import Link
    from cogwork.plugin.node import Node, Subscription

__all__ = ("RemoteConsumer",)


@dataclass(slots=True, eq=False)
class RemoteConsumer:
    """A link by which a shard of this container feeds another one's consumer.

    Attributes:
        node: The queue.
        subscription: Its standing there.
    """

    node: Node
    subscription: Subscription

    def attached(self, link: Link) -> None:
        """Never happens: the other container attaches."""

    def stopping(self, link: Link) -> None:
        """It is about to end: by the other container, or because the way there is broken.

        Where the other container only leaves it (AMQP 1.0 §2.6.4), its consumer is still there, and
        has what it has.
        """
        # Only a link that goes with its session ends without a detach by either side.
        self.subscription.is_cut_off = link.state is LinkState.DETACHED or link.was_left
        if link.ending is Ending.CLOSED and not link.is_lost:
            self.subscription.departure = Departure.ORDERLY
        self.node.unsubscribe(self.subscription)

    def detached(self, link: Link, error: AmqpError | None) -> None:
        """Nothing is left to do."""

"""A consumer: who takes from which queue, under which tag (AMQP 0-9-1 §1.8.3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cogwork.amqp.terminus import Source
from cogwork.plugin.node import Subscription

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declared_queue import DeclaredQueue
    from cogwork.dataplane.amqp091.channel import BasicConsumer
    from cogwork.dataplane.transport.outgoing import OutgoingLink

__all__ = ("Consumer", "subscription_of")


def subscription_of(end: BasicConsumer, address: str) -> Subscription:
    """Return what a queue's node takes a consumer by."""
    # Nodes that come from elsewhere know links alone; a queue's store feeds any end alike.
    link = cast("OutgoingLink", end)
    return Subscription(link=link, address=address, source=Source(address=address))


class Consumer:
    """One consumer of a channel; the owner of its compiled end, as a link is of another's.

    Attributes:
        channel: Whose it is.
        tag: What the client calls it.
        queue: Where it takes from.
        is_exclusive: Whether nobody else may take from there.
        ticket: By what its place at a queue elsewhere is reserved; 0 where none is.
        end: The compiled half.
        is_attached: Whether it has not ended.
        is_active: Whether it gets messages; of a queue with a single active consumer one does.
        context: Whatever the container keeps with it.
    """

    def __init__(
        self,
        channel: Channel,
        tag: str,
        queue: DeclaredQueue,
        end: BasicConsumer,
        *,
        is_exclusive: bool = False,
        ticket: int = 0,
    ) -> None:
        self.channel = channel
        self.tag = tag
        self.queue = queue
        self.is_exclusive = is_exclusive
        self.ticket = ticket
        self.end = end
        self.is_attached = False
        self.is_active = False
        self.context: object = None
        end.owner = self
        self._subscription = subscription_of(end, queue.address)

    @property
    def name(self) -> str:
        """What it is called in logs."""
        return self.tag

    @property
    def address(self) -> str:
        """Where it takes from."""
        return self.queue.address

    @property
    def has_room(self) -> bool:
        """Whether it can take a message now, as far as its own prefetch goes."""
        return self.is_active and self.end.credit > 0

    def join(self) -> None:
        """Begin to take from the queue.

        Raises:
            Refused: The queue does not take it.
        """
        self.queue.enter(self)
        self.is_attached = True
        self.channel.consumers[self.tag] = self

    def activate(self) -> None:
        """Get messages from now on.

        Raises:
            Refused: The queue does not take it.
        """
        self.queue.node.subscribe(self._subscription)
        self.is_active = True
        reach = self.channel.vhost.reach
        if reach is not None:
            claim = {
                "exclusive": int(self.is_exclusive),
                "priority": self.end.priority,
                "ticket": self.ticket,
            }
            reach.queue_federation.add_consumer(self.queue.node, self._subscription, claim=claim)

    def leave(self) -> None:
        """Take no more; what is unacknowledged stays with the channel."""
        if not self.is_attached:
            return
        self.is_attached = False
        self.channel.connection.count_no_consumer()
        del self.channel.consumers[self.tag]
        if self.is_active:
            self.queue.node.unsubscribe(self._subscription)
        self.end.detach()
        reach = self.channel.vhost.reach
        if reach is not None:
            reach.queue_federation.leave_consumer(self._subscription)
        self.queue.leave(self)
        if self.queue.is_abandoned:
            self.channel.queues.mortal.end(self.queue)

    def detach(self, _error: AmqpError | None = None) -> None:
        """End it from this side: its queue goes, or may not be taken from any more."""
        if self.is_attached:
            self.channel.cancel(self)

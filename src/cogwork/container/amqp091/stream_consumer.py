"""A consumer of a stream: it reads on from where it wants to, and takes nothing away.

What it acknowledges gives it credit for more, and means nothing to the stream.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from cogwork.amqp.terminus import Source
from cogwork.amqp091.methods import BasicConsumeOk
from cogwork.plugin.node import Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.types import Symbol
    from cogwork.container.amqp091.channel import Channel
    from cogwork.dataplane.amqp091.channel import BasicConsumer
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.plugin.capabilities import Streaming

__all__ = ("StreamConsumer",)


class StreamConsumer:
    """One consumer of a channel; the owner of its compiled end.

    Attributes:
        channel: Whose it is.
        tag: What the client calls it.
        node: The stream.
        end: The compiled half.
        is_attached: Whether it has not ended.
        answered: Done once it is known where it starts, and the client has been told.
    """

    def __init__(
        self,
        channel: Channel,
        tag: str,
        node: Streaming,
        end: BasicConsumer,
        filters: Mapping[Symbol, object],
    ) -> None:
        self.channel = channel
        self.tag = tag
        self.node = node
        self.end = end
        self.is_attached = False
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_told = False
        end.owner = self
        link = cast("OutgoingLink", end)  # nodes know links; what this one needs, any end can do
        self._subscription = Subscription(
            link=link,
            address=node.address,
            source=Source(address=node.address, filter=dict(filters)),
        )

    @property
    def name(self) -> str:
        """What it is called in logs."""
        return self.tag

    @property
    def address(self) -> str:
        """Where it reads."""
        return self.node.address

    def join(self, *, is_told: bool) -> None:
        """Begin to read; `answer` is called once it is known where.

        Args:
            is_told: Whether the client wants to hear of that.

        Raises:
            Refused: The stream takes nobody.
        """
        self._is_told = is_told
        self.channel.connection.count_consumer()
        try:
            self.node.subscribe(self._subscription)
        except BaseException:
            self.channel.connection.count_no_consumer()
            raise
        self.is_attached = True
        self.channel.consumers[self.tag] = self
        if not self._subscription.is_put_off:
            self.answer()

    def answer(self) -> None:
        """Tell the client that it consumes: what is appended from now on comes after its start."""
        if self.answered.done():
            return
        self.answered.set_result(None)
        if self._is_told and self.is_attached:
            self.channel.reply(BasicConsumeOk(consumer_tag=self.tag))

    def leave(self) -> None:
        """Read no more; what is unacknowledged stays with the channel."""
        if not self.is_attached:
            return
        self.is_attached = False
        self.channel.connection.count_no_consumer()
        del self.channel.consumers[self.tag]
        self.node.unsubscribe(self._subscription)
        self.end.detach()
        if not self.answered.done():
            self.answered.set_result(None)

    def detach(self, _error: AmqpError | None = None) -> None:
        """End it from this side: the stream has gone, or has lost what it was to get."""
        if self.is_attached:
            self.answer()
            self.channel.cancel(self)

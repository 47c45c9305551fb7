"""Direct reply-to: a client is sent replies without a queue for them (RabbitMQ).

A client consumes from `amq.rabbitmq.reply-to`, and names that as the reply-to of its requests. What
the server gets in its place names a temporary queue of this container, as a dynamic target of AMQP
1.0 has one: it takes what is published to it by the default exchange, and goes with its consumer.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from cogwork.amqp.terminus import Target
from cogwork.amqp091.content import Content
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.container.amqp091.consumer import subscription_of
from cogwork.container.vhost.reply_addresses import (
    DIRECT_REPLY_TO,
    new_address,
    reply_address_in,
)

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.plugin.capabilities import Storing

__all__ = (
    "REPLY_TO",
    "ReplyConsumer",
    "consumer_of_replies",
    "entry_of_reply",
    "with_reply_address",
)

REPLY_TO: Final = DIRECT_REPLY_TO

HAS_REPLY_TO = 1 << 9
"""The property's flag."""


class ReplyConsumer:
    """A consumer of replies, in the place of one of a queue.

    Attributes:
        tag: What the client calls it.
        address: Where replies go.
        end: The compiled half.
        is_attached: Whether it has not ended.
    """

    def __init__(self, channel: Channel, tag: str) -> None:
        self.tag = tag
        self.address = new_address(channel.connection.reply_prefix)
        self.is_attached = False
        self._channel = channel
        self.end = channel.end.consumer(octets_of(tag), no_ack=True)
        self.end.owner = self
        self._subscription = subscription_of(self.end, self.address)
        self._queue: Storing | None = None

    @property
    def name(self) -> str:
        """What it is called in logs."""
        return self.tag

    @property
    def key(self) -> str:
        """What stands for it as a reply-to, and as a routing key."""
        return f"{REPLY_TO}.{self.address}"

    def join(self) -> None:
        """Begin to take replies.

        Raises:
            Refused: The connection has too many temporary queues.
        """
        node = self._channel.vhost.temporary.add(self.address, Target(), self._channel.connection)
        assert node.queue is not None, "a target that asks for no topic is a queue"
        self._queue = node.queue
        self._queue.subscribe(self._subscription)
        self.is_attached = True
        self._channel.consumers[self.tag] = self
        self._channel.replies = self

    def leave(self) -> None:
        """Take no more."""
        if self.is_attached:
            self.is_attached = False
            self._channel.connection.count_no_consumer()
            del self._channel.consumers[self.tag]
            self._channel.replies = None
            if self._queue is not None:
                self._queue.unsubscribe(self._subscription)
            self.end.detach()
            self._channel.vhost.temporary.remove(self.address)

    def detach(self, _error: AmqpError | None = None) -> None:
        """End it from this side."""
        if self.is_attached:
            self._channel.cancel(self)


def consumer_of_replies(channel: Channel, tag: str, *, no_ack: bool) -> ReplyConsumer:
    """Make a channel's consumer of replies.

    Raises:
        ProtocolError: It has one, or would acknowledge (406).
    """
    if not no_ack:
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, "reply consumer cannot acknowledge")
    if channel.replies is not None:
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, "reply consumer already set")
    return ReplyConsumer(channel, tag)


def with_reply_address(channel: Channel, content: Content) -> Content:
    """Return a message with the address of its sender's consumer of replies, if it wants replies.

    Raises:
        ProtocolError: The channel has no such consumer (406).
    """
    octets = content.property_octets
    if not int.from_bytes(octets[:2]) & HAS_REPLY_TO or REPLY_TO.encode() not in octets:
        return content
    if content.properties.reply_to != REPLY_TO:
        return content
    if channel.replies is None:
        text = "fast reply consumer does not exist"
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
    properties = dataclasses.replace(content.properties, reply_to=channel.replies.key)
    return Content.of(properties, content.body)


def entry_of_reply(vhost: VirtualHost, key: str) -> AddressEntry | None:
    """Return where a reply goes; None where its key is none of a reply, or nobody is there."""
    address = reply_address_in(key)
    return None if address is None else vhost.space.entries.get(address.encode())

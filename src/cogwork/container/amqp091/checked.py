"""Messages of AMQP 0-9-1 that are held to the schema of where they go.

Theory of operation. A message is checked as the one of AMQP 1.0 that it means, for the address that
a sender of that protocol would name: `queue/KEY` by the default exchange, else `exchange/NAME/KEY`
or `exchange/NAME`. Most are decided over at once; what takes longer has its channel wait, so that
nothing overtakes. What does not fit is refused: by a nack, or, if the client asked for no confirms,
by closing the channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import DecodeError
from cogwork.amqp.errors import ProtocolError as AmqpProtocolError
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.types import Described
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.dataplane.encoding.codec import decode
from cogwork.dataplane.message.basic import pack_basic
from cogwork.dataplane.message.basic_conversion import amqp_from_basic, escaped
from cogwork.schema.errors import TooCostly

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.methods import BasicPublish
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declarer import Work
    from cogwork.container.schemas.checker import Checker

__all__ = ("guarded_address", "publish_checked")


def guarded_address(channel: Channel, method: BasicPublish) -> bytes | None:
    """Return the address whose schema a message is held to; None if it is held to none."""
    schemas = channel.vhost.schemas
    if schemas is None or not schemas.guards.is_any:
        return None
    key = escaped(method.routing_key)
    if not method.exchange:
        named = [channel.queues.streams.address(key)]
    else:
        exchange = channel.vhost.exchanges.address(method.exchange)
        named = [f"{exchange}/{key}", exchange]
    found = [name for name in named if schemas.checkpoint_of(name) is not None]
    return found[0].encode() if found else None


def publish_checked(
    channel: Channel,
    method: BasicPublish,
    content: Content,
    address: bytes,
    publish: Callable[[], Work | None],
) -> Work | None:
    """Publish a message if it is one by the schema of an address.

    Args:
        channel: Whose it is.
        method: How it was published.
        content: The message.
        address: Where it goes.
        publish: Publishes it.

    Raises:
        ProtocolError: It is none, and the client has asked for no confirms (406).
    """
    assert channel.vhost.schemas is not None, "else nothing has a schema"
    checker = channel.vhost.schemas.checker
    message = amqp_from_basic(
        pack_basic(
            octets_of(method.exchange),
            octets_of(method.routing_key),
            content.property_octets,
            content.body,
        )
    )
    try:
        verdict = checker.decide_now(address, message)
    except TooCostly:
        return _publish_later(channel, checker, address, message, publish)
    return _go_by(channel, verdict, publish)


async def _publish_later(
    channel: Channel,
    checker: Checker,
    address: bytes,
    message: bytes,
    publish: Callable[[], Work | None],
) -> None:
    work = _go_by(channel, await checker.decide_later(address, message), publish)
    if work is not None:
        await work


def _go_by(
    channel: Channel, verdict: bytes | None, publish: Callable[[], Work | None]
) -> Work | None:
    """Publish a message, or refuse it."""
    if verdict is None:
        return publish()
    if not channel.publishing.is_confirming:
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, _reason_in(verdict))
    channel.end.confirm(channel.end.count_published(), False)
    return None


def _reason_in(outcome: bytes) -> str:
    """Return what a rejected outcome says."""
    try:
        value, _ = decode(outcome)
        rejected = Rejected.from_fields(value.value) if isinstance(value, Described) else None
    except (DecodeError, AmqpProtocolError):
        rejected = None
    error = None if rejected is None else rejected.error
    return (error.description if error is not None else None) or "it is none by its schema"

"""What a client says of a terminus by its capabilities: that it is a queue, or a topic.

Theory of operation. JMS names its destinations as the application does, and says by a capability
(`queue`, `topic`, `temporary-queue`, `temporary-topic`) which of the two a name is. A plain name,
which no rule gives a meaning, gets it from there: the queue `orders` is `queue/orders`, the topic
`news` is `topic/news`, and the two never meet. A name that a rule knows is what the rule says; a
client that takes it for the other thing would wait for messages that never come, or take those of
others, so it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp.types import Symbol
from cogwork.container.vhost.node_table import QUEUE_PREFIX, STREAM_PREFIX
from cogwork.container.vhost.reply_addresses import REPLY_PREFIX
from cogwork.plugin.node import Refused
from cogwork.router.addresses import Distribution, is_default
from cogwork.router.exchanges.addresses import RABBITMQ_QUEUES, rabbitmq_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.router.addresses import AddressRule

__all__ = ("address_meant", "address_named", "address_said", "wants_topic")

QUEUES = frozenset({Symbol("queue"), Symbol("temporary-queue")})
TOPICS = frozenset({Symbol("topic"), Symbol("temporary-topic")})


def wants_topic(capabilities: Iterable[Symbol]) -> bool:
    """Tell whether a terminus is to be a topic."""
    return not TOPICS.isdisjoint(capabilities)


def address_meant(address: str, capabilities: tuple[Symbol, ...], vhost: VirtualHost) -> str:
    """Return the address that a client means by a name and its terminus's capabilities.

    Args:
        address: As the client writes it.
        capabilities: Of the source or the target.
        vhost: Where it is.

    Raises:
        Refused: The address is of another kind than the client says, or cannot be decoded.
    """
    address = address_named(address, vhost)
    is_queue, is_topic = not QUEUES.isdisjoint(capabilities), wants_topic(capabilities)
    if not is_queue and not is_topic:
        return address
    if is_queue and is_topic:
        text = f"{address!r:.200} cannot be a queue and a topic: name one capability of the two"
        raise Refused(text, Condition.INVALID_FIELD)
    name, rule = vhost.rule_of(address)
    if name.startswith(REPLY_PREFIX):
        return address
    if is_default(rule):
        return f"topic/{name}" if is_topic else f"queue/{name}"
    kind = _kind(rule)
    if kind is not None and (kind == "topic") is not is_topic:
        asked = "topic" if is_topic else "queue"
        text = (
            f"{name!r:.200} is a {kind}, and no {asked} as the capability says: a plain name, or "
            f"one that begins with {asked}/, is a {asked}"
        )
        raise Refused(text, Condition.PRECONDITION_FAILED)
    return address


def address_named(address: str, vhost: VirtualHost) -> str:
    """Return the address that a client means which writes it as for RabbitMQ 4.

    Its queue may be a stream, as for clients of AMQP 0-9-1.

    Raises:
        Refused: It cannot be decoded.
    """
    try:
        named = rabbitmq_address(address)
    except ValueError as error:
        raise Refused(str(error), Condition.INVALID_FIELD) from error
    if address.startswith(RABBITMQ_QUEUES):
        name = named.removeprefix(QUEUE_PREFIX)
        if vhost.nodes.stream_named(name) is not None:
            return f"{STREAM_PREFIX}{name}"
    return named


def address_said(vhost: VirtualHost, address: bytes, is_topic: bool) -> bytes:
    """Return the address that a message means which says whether that is a topic, or a queue.

    One whose rule says otherwise stays what the rule makes of it.
    """
    try:
        kinds = TOPICS if is_topic else QUEUES
        return address_meant(address.decode(), tuple(kinds), vhost).encode()
    except (Refused, UnicodeDecodeError):
        return address


def _kind(rule: AddressRule) -> str | None:
    """Return which of the two an address is by its rule; None where it may be taken for either."""
    if rule.kind == "topic":
        return "topic"
    if rule.kind == "queue":
        return "queue"
    if rule.kind == "direct":
        return "topic" if rule.distribution is Distribution.MULTICAST else "queue"
    return None

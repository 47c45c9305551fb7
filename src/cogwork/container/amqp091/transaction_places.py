"""Where a transaction's queues are: it is done as a whole in one place, or not at all.

The queues of one container, whose home it is or that it has for itself, are written down together
(`journals.together`). A replicated queue, or a stream, has a log of its own: it is a place for
itself. What would be done in several places could stop half way, so it is refused before anything
of it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.declared_queue import address_of
from cogwork.container.amqp091.mandatory_publishing import route_of
from cogwork.plugin.capabilities import replica_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.publishing import Collected

__all__ = ("demand_one_place",)

CONTAINER = "container "
"""What the private queues of another container are called, whatever their names."""


def demand_one_place(channel: Channel, collected: Collected) -> None:
    """Check that all that a transaction does is done in one place.

    Args:
        channel: Whose it is.
        collected: What its commit would do.

    Raises:
        ProtocolError: It is not (540).
    """
    places: dict[str, str] = {}
    for address in _addresses(channel, collected):
        places.setdefault(_place_of(channel, address), address)
        if len(places) > 1:
            one, other = places.values()
            text = (
                f"a transaction is for queues of one container, or for one replicated queue or "
                f"stream: '{one}' and '{other}' in vhost '{channel.vhost_name}' are apart"
            )
            raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, text)


def _addresses(channel: Channel, collected: Collected) -> Iterator[str]:
    """Yield the addresses of the queues and streams that are touched."""
    streams, exchanges = channel.queues.streams, channel.vhost.exchanges
    for method, content in collected.messages:
        route = route_of(channel, method, content)
        for name in route.queues:
            if exchanges.leads_to(name):
                yield streams.address(name)
        for forward in route.forwards:
            yield f"{CONTAINER}{forward.container}"
    for tag in collected.tags:
        consumer = channel.end.consumer_of(tag)
        if consumer is not None and consumer.owner is not None:
            yield consumer.owner.address


def _place_of(channel: Channel, address: str) -> str:
    """Return what names the place of a queue: a container's id, or the address itself."""
    vhost = channel.vhost
    if address.startswith(CONTAINER):
        return address.removeprefix(CONTAINER)
    name = address.removeprefix(address_of(""))
    if name == address:
        return address  # a stream
    node = vhost.nodes.get(address)
    if node is None:
        return vhost.exchanges.holder_of(name) or vhost.container_id
    replica = replica_of(node)
    if replica is None:
        return vhost.container_id
    return replica.home or address

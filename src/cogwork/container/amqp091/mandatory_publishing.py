"""Sees that a message which is to be returned really has no route (AMQP 0-9-1 §1.8.3.3).

A container of a cluster may not have heard of a binding yet, or be cut off. So before it returns a
message it reads up to what the cluster has; where nobody answers, it goes by what it knows for a
while.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.amqp091.strings import octets_of
from cogwork.container.amqp091.published import COPIES
from cogwork.container.vhost.reply_addresses import reply_address_in
from cogwork.router.exchanges.binding import Routed

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.methods import BasicPublish
    from cogwork.container.amqp091.channel import Channel
    from cogwork.container.amqp091.declarer import Work
    from cogwork.container.vhost.shared import VhostTopology
    from cogwork.router.exchanges.graph import Route

__all__ = ("catching_up", "route_of")

UNANSWERED_S = 10.0
"""So long nobody is asked again who has not answered: each time takes two seconds."""


def route_of(channel: Channel, method: BasicPublish, content: Content) -> Route:
    """Find where a message goes, by all of its keys."""
    headers = content.properties.headers or {}
    keys = [octets_of(method.routing_key)]
    for name in COPIES:
        copies = headers.get(name)
        keys += [octets_of(str(key)) for key in copies] if isinstance(copies, list) else []
    return channel.vhost.exchanges.route(method.exchange, Routed(tuple(keys), lambda: headers))


def catching_up(
    channel: Channel, method: BasicPublish, content: Content, publish: Callable[[], None]
) -> Work | None:
    """Return what publishes a mandatory message once it is known where it goes.

    None is returned where that is known now.
    """
    topology = channel.vhost.topology
    if topology is None or not topology.is_active or _has_route(channel, method, content):
        return None
    if time.monotonic() < channel.queues.unanswered_until_s:
        return None
    return _catch_up(channel, topology, publish)


def _has_route(channel: Channel, method: BasicPublish, content: Content) -> bool:
    if not method.exchange and reply_address_in(method.routing_key) is not None:
        return True  # no cluster knows who awaits replies
    route = route_of(channel, method, content)
    exchanges = channel.vhost.exchanges
    return bool(route.forwards) or any(exchanges.leads_to(queue) for queue in route.queues)


async def _catch_up(channel: Channel, topology: VhostTopology, publish: Callable[[], None]) -> None:
    if await topology.catch_up():
        channel.queues.unanswered_until_s = time.monotonic() + UNANSWERED_S
    publish()

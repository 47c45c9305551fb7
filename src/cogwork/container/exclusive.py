"""Addresses that one receiver has for itself: the names of servers, and of ZeroMQ peers.

A receiver that asks for its address alone (`EXCLUSIVE`) is refused where somebody receives there,
at this container or at one that is linked with it; and while it stands, everybody else is. The
same client with the same link takes its address over: nobody may have noticed yet that its earlier
connection is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.extensions import EXCLUSIVE, EXCLUSIVE_AGAIN
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.spi.node import Refused

if TYPE_CHECKING:
    from cogwork.amqp.terminus import Source
    from cogwork.container.clients import ClientContext
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.link import Link

__all__ = ("Holders",)


class Holders:
    """Who holds an address alone, by virtual host and address."""

    def __init__(self) -> None:
        """Knows of nobody."""
        self._links: dict[tuple[str, str], Link] = {}

    def claim(self, link: Link, source: Source, entry: AddressEntry, client: ClientContext) -> None:
        """Lets a receiver have an address, alone where it asks for that.

        Raises:
            Refused: Somebody holds it.
        """
        is_alone = EXCLUSIVE in source.capabilities
        if not is_alone and not self._links:
            return
        name = (source.address or "").removeprefix("/")
        key = (client.vhost.name, name)
        holder = self._links.get(key)
        if holder is not None and _owner_of(holder) == _owner_of(link):
            text = "taken over by the same client, with another connection"
            holder.detach(AmqpError(condition=Condition.LINK_STOLEN, description=text))
            self._links.pop(key, None)
            if holder.end is not None:
                entry.remove_outlet(holder.end)
            holder = None
        if holder is not None:
            raise _taken(name, f"by {_owner_of(holder)[0]!r:.80}")
        if not is_alone:
            return
        if any(isinstance(each, OutgoingLink) and not each.is_branch for each in entry.outlets):
            raise _taken(name, "by another receiver")
        if EXCLUSIVE_AGAIN not in source.capabilities and client.vhost.reach is not None:
            elsewhere = client.vhost.reach.wanted_at(name)
            if elsewhere:
                raise _taken(name, f"at container {', '.join(sorted(elsewhere))}")
        self._links[key] = link

    def release(self, link: Link, address: str, client: ClientContext) -> None:
        """Gives an address back, if the link holds it."""
        key = (client.vhost.name, address.removeprefix("/"))
        if self._links.get(key) is link:
            del self._links[key]


def _owner_of(link: Link) -> tuple[str, str]:
    """Returns what a client is known by across its connections: its container-id and link."""
    opened = link.session.connection.remote
    return ("" if opened is None else opened.container_id, link.name)


def _taken(name: str, holder: str) -> Refused:
    return Refused(
        f"{name!r:.200} is held {holder}: a name is one receiver's alone",
        Condition.RESOURCE_LOCKED,
    )

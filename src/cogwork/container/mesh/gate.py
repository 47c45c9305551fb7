"""Takes the links that other containers attach here, in their tunnels.

What comes by them has been routed already: it goes to this container's own consumers and nodes, and
never out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp.performatives import Attach, Role
from cogwork.amqp.terminus import Source, Target
from cogwork.container.mesh.names import VHOST
from cogwork.container.mesh.tunnels import origin_of
from cogwork.dataplane.incoming import IncomingLink
from cogwork.spi.node import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.container.mesh.service import MeshService
    from cogwork.container.virtual_host import VirtualHost
    from cogwork.dataplane.link import Link

__all__ = ("Gate",)

WINDOW = 10_000
"""Deliveries of one address on their way between two containers."""


class Gate:
    """Decides over attaches of other containers."""

    def __init__(self, mesh: MeshService, vhosts: Mapping[str, VirtualHost]) -> None:
        self._mesh = mesh
        self._vhosts = vhosts

    def take(self, link: Link, attach: Attach) -> None:
        """Accepts or refuses a link."""
        try:
            if origin_of(link.session) is None:
                raise Refused("a link outside of a tunnel")
            vhost = self._vhosts.get(str((attach.properties or {}).get(VHOST, "")))
            if vhost is None:
                raise Refused("a virtual host that is not served here", Condition.NOT_FOUND)
            if attach.role is not Role.SENDER:
                raise Refused("containers take nothing from each other", Condition.NOT_IMPLEMENTED)
            self._take_sender(link, attach, vhost)
        except Refused as refusal:
            link.refuse(refusal.condition, refusal.description)

    def _take_sender(self, link: Link, attach: Attach, vhost: VirtualHost) -> None:
        target = attach.target
        if not isinstance(target, Target):
            raise Refused("a sender without a target", Condition.INVALID_FIELD)
        entry = None if target.address is None else vhost.near_entry_of(target.address)
        end = IncomingLink(link.session.end, link.handle, entry, vhost.near, WINDOW)
        link.attach(
            source=attach.source or Source(),
            target=Target(address=target.address),
            snd_settle_mode=attach.snd_settle_mode,
        )
        link.carry(end)
        if entry is not None:
            entry.add_source(end)
        end.open_credit()

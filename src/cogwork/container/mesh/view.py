"""What management sees of the mesh: `plugin.mesh.MeshView`."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from cogwork.config.link_urls import BadLinkUrl, LinkUrl
from cogwork.container.connections.clients import peer_of
from cogwork.plugin.mesh import LinkRow
from cogwork.plugin.node import Refused
from cogwork.router.mesh.link import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.mesh.dialler import LinkDialler
    from cogwork.container.mesh.peer_link import PeerLink
    from cogwork.container.mesh.service import MeshService

__all__ = ("LinkedContainer", "View")


class Progress(Protocol):
    """How far a container is with leaving the mesh."""

    @property
    def facts(self) -> Mapping[str, object]:
        """All of it, in plain values."""


class LinkedContainer(Protocol):
    """What the view needs of a container."""

    @property
    def mesh(self) -> MeshService:
        """The other containers."""

    @property
    def endpoints(self) -> Sequence[str]:
        """Where it listens."""

    @property
    def leaving(self) -> Progress | None:
        """Its way out of the mesh; None while it stays."""

    def leave(self) -> None:
        """Begin to leave the mesh."""


class View:
    """The mesh, as management sees it."""

    def __init__(self, container: LinkedContainer) -> None:
        """Initialize it with the container, which may have no mesh yet.

        Args:
            container: Whose mesh it is.
        """
        self._container = container

    def _service(self) -> MeshService:
        return self._container.mesh

    def links(self) -> list[LinkRow]:
        """List the links that are kept from here, and those that came in."""
        service = self._service()
        out = [self._dialled(dialler) for dialler in service.diallers]
        return out + [
            self._standing(peer_link)
            for peer_link in service.peer_links
            if peer_link.dialler is None
        ]

    def add_link(self, url: str, cost: int) -> None:
        """Dial another container; see `MeshView`."""
        self._demand_another(LinkUrl.parse(url))
        self._service().diallers.add(url, cost)

    def _demand_another(self, target: LinkUrl) -> None:
        """See that a link does not lead to where this container listens.

        Raises:
            Refused: It does.
        """
        for listener in self._container.endpoints:
            with suppress(BadLinkUrl):  # AMQP over WebSocket, where no links are made
                own = LinkUrl.parse(listener)
                if target.leads_to(own.host, own.port, socket.gethostname()):
                    raise Refused(
                        f"link: {target} is where this container listens itself; "
                        "another container is expected"
                    )

    def remove_link(self, url: str) -> None:
        """Give up a link that is dialled from here; see `MeshView`."""
        self._service().diallers.remove(url)

    def leave(self) -> None:
        """Have this container leave the mesh for good; see `MeshView`."""
        self._container.leave()

    def snapshot(self) -> dict[str, object]:
        """Return what is known of the mesh; see `MeshView`."""
        leaving = self._container.leaving
        known = self._service().mesh.snapshot(time.monotonic())
        return {**known, "leaving": None if leaving is None else leaving.facts}

    def _dialled(self, dialler: LinkDialler) -> LinkRow:
        if dialler.peer_link is not None:
            return self._standing(dialler.peer_link)
        if self._service().is_linked(dialler.peer):
            return self._standing_by(dialler)
        return LinkRow(
            url=str(dialler.url),
            direction="out",
            state="refused" if dialler.is_refused else "connecting",
            neighbour=None,
            cost=dialler.link.cost,
            since_s=dialler.since_s,
            error=dialler.problem,
        )

    def _standing_by(self, dialler: LinkDialler) -> LinkRow:
        """Show a link to a neighbour that is linked by another one, which has the counts."""
        link = self._service().mesh.neighbours.active[dialler.peer]
        return LinkRow(
            url=str(dialler.url),
            direction="out",
            state="up",
            neighbour=dialler.peer,
            cost=link.effective_cost,
            since_s=dialler.since_s,
        )

    def _standing(self, peer_link: PeerLink) -> LinkRow:
        link = self._service().mesh.neighbours.links.get(peer_link.number)
        is_up = link is not None and link.state is State.TWO_WAY
        control, data = peer_link.control.connection.wire, peer_link.data.connection.wire
        messages_in, messages_out = peer_link.data.carried
        return LinkRow(
            url=_url_of(peer_link),
            direction="in" if peer_link.dialler is None else "out",
            state="up" if is_up else "connecting",
            neighbour=peer_link.peer or None,
            cost=0 if link is None else link.effective_cost,
            since_s=peer_link.since_s,
            error=peer_link.why_lost,
            bytes_in=control.bytes_in + data.bytes_in,
            bytes_out=control.bytes_out + data.bytes_out,
            control_bytes_in=control.bytes_in,
            control_bytes_out=control.bytes_out,
            messages_in=messages_in,
            messages_out=messages_out,
        )


def _url_of(peer_link: PeerLink) -> str:
    if peer_link.dialler is not None:
        return str(peer_link.dialler.url)
    client = cast("ClientContext", peer_link.control.connection.context)
    if client.listen.scheme == "unix":
        return f"{client.listen.scheme}://{client.listen.endpoint}#{peer_link.peer}"
    return f"{client.listen.scheme}://{peer_of(client)}"

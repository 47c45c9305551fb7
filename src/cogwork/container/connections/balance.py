"""How the clients of linked containers are shared out among them."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, cast

from cogwork.amqp.redirect import FORCE, REDIRECTS
from cogwork.container.connections.redirect import Newcomer, Redirector
from cogwork.container.connections.usage import load_of, surplus_of
from cogwork.dataplane.connection import Connection
from cogwork.router.mesh.bounds import HOSTS_MAX
from cogwork.router.mesh.messages import Figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp.redirect import Redirect
    from cogwork.config.mesh_settings import MeshOptions
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peers import Peers
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("Balance",)

SWEEP_S = 1.0
"""Between two looks at the figures, as the container does it."""


class Balance:
    """Tells neighbours how much this container has to do, and newcomers where there is less."""

    def __init__(
        self,
        mesh: MeshService,
        peers: Peers,
        vhosts: Mapping[str, VirtualHost],
        options: MeshOptions,
    ) -> None:
        """Redirect nobody before figures have come.

        Args:
            mesh: Carries the figures.
            peers: Has the clients, and asks where newcomers should go.
            vhosts: Have the queues.
            options: How many clients more than a neighbour's newcomers are sent there for, and how
                often neighbours hear of each other.
        """
        self._mesh = mesh
        self._peers = peers
        self._vhosts = vhosts
        age_s = options.heartbeat_s + SWEEP_S
        self._redirector = Redirector(options.redirect_margin, age_s)
        self._known: set[str] = set()
        self._load = 0.0
        self._own: tuple[str, ...] = ()
        peers.redirect = self._choose

    def _choose(self, newcomer: Newcomer) -> Redirect | None:
        self._forget_gone()
        return self._redirector.choose(newcomer, self.usage, time.monotonic())

    @property
    def usage(self) -> float:
        """What this container has to do, counted in clients."""
        return self._peers.clients + self._load

    @property
    def surplus(self) -> int:
        """How many clients this container has beyond its share."""
        self._forget_gone()
        return surplus_of(self.usage, self._redirector.usages)

    def movable(self) -> list[tuple[Connection, ClientContext]]:
        """List the clients that can be moved: they follow redirects, and do not ask to stay."""
        found = []
        for connection, client in self._peers.connections.items():
            opened = connection.remote if isinstance(connection, Connection) else None
            if opened is None or not client.is_counted or connection.is_over:
                continue
            properties = opened.properties or {}
            if REDIRECTS in properties and properties.get(FORCE) is not True:
                found.append((cast("Connection", connection), client))
        return found

    def move(self, connection: Connection, client: ClientContext) -> bool:
        """Redirect a client that stands to where there is least to do; tell whether it goes."""
        newcomer = Newcomer(client.listen.scheme, is_near=client.listen.is_loopback)
        redirect = self._redirector.move(newcomer, time.monotonic())
        if redirect is not None:
            connection.close(redirect.to_error(frame_size_bytes=connection.wire.max_frame_out))
        return redirect is not None

    def _forget_gone(self) -> None:
        """Send nobody where there is no link any more: clients of one that died come at once."""
        for gone in self._known - self._mesh.mesh.neighbours.active.keys():
            self._known.discard(gone)
            self._redirector.remove(gone)

    def advertise(self, urls: tuple[str, ...]) -> None:
        """Tell neighbours where clients may be sent to reach this container."""
        self._own = urls
        if not self._redirector.is_draining:
            self._mesh.set_hosts(urls[:HOSTS_MAX])

    def set_margin(self, margin: int | None) -> None:
        """Say how many clients more than a neighbour's newcomers are sent there for."""
        self._redirector.margin = margin

    def drain(self) -> None:
        """Send every newcomer away that can be, and have nobody sent here."""
        self._redirector.is_draining = True
        self._mesh.set_hosts(())

    def send_away(self) -> None:
        """Redirect the clients that are here, as far as there is anywhere to go."""
        for connection, client in list(self._peers.connections.items()):
            if not isinstance(connection, Connection):
                continue  # AMQP 0-9-1 has no redirects
            opened = connection.remote
            if opened is None or not client.is_counted or connection.is_over:
                continue
            if (opened.properties or {}).get(FORCE) is True:
                continue
            newcomer = Newcomer(client.listen.scheme, is_near=client.listen.is_loopback)
            redirect = self._choose(newcomer)
            if redirect is not None:
                size_bytes = connection.wire.max_frame_out
                connection.close(redirect.to_error(frame_size_bytes=size_bytes))

    def tick(self, now_s: float) -> None:
        """Take over the neighbours' figures, and tell this container's own."""
        active = self._mesh.mesh.neighbours.active
        self._forget_gone()
        self._known = set(active)
        for neighbour, link in active.items():
            # Workers share their listeners: who is sent there may come back.
            hosts = [url for url in self._mesh.hosts.get(neighbour, ()) if url not in self._own]
            if link.figures is not None and hosts:
                load = load_of(link.figures)
                clients = link.figures.connections
                self._redirector.update(neighbour, clients, hosts, now_s, load)
            else:
                self._redirector.remove(neighbour)
        figures = self._figures(len(active))
        self._load = load_of(figures)
        self._mesh.mesh.set_figures(figures)

    def _figures(self, peers: int) -> Figures:
        queues = [node for vhost in self._vhosts.values() for node in vhost.nodes.storing.values()]
        return Figures(
            connections=self._peers.clients,
            messages=sum(node.store.waiting for node in queues),
            memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            queues=len(queues),
            peers=peers,
        )

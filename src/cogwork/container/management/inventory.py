"""What a container holds, by type: connections, sessions, links, addresses, queues, nodes.

Theory of operation. Each type of entity is an `Entities`: where its members are, and how a row is
made of one. A row is made when it is asked for, of counters that are kept anyway; a page of rows
costs what its rows cost, and skipping to it next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sized
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from cogwork.cluster.members import spid_of
from cogwork.config.link_urls import BadLinkUrl, LinkUrl
from cogwork.container.cluster.cluster_settings import ClusterSettings
from cogwork.container.management import rows
from cogwork.container.mesh import rows as mesh_rows
from cogwork.container.mesh import view as mesh_view
from cogwork.plugin.management import (
    BACKUP,
    LIMIT,
    LINK,
    MESH,
    PERMISSION,
    POLICY,
    USER,
    VHOST,
)
from cogwork.router.exchanges.addresses import name_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cogwork.container.connections.peer import Peer
    from cogwork.container.container import Container
    from cogwork.container.vhost.attachments import Attachment
    from cogwork.container.vhost.declared_exchange import DeclaredExchange
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.plugin.management import Collection, Row
    from cogwork.plugin.mesh import LinkRow, MeshView
    from cogwork.plugin.node import Node
    from cogwork.router.exchanges.binding import Binding

__all__ = ("Entities", "collections_of", "links_of", "mesh_of")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entities(Generic[T]):
    """The entities of one type.

    Attributes:
        attributes: What a row holds.
        members: Lists what there is, in a stable order.
        name_of: Tells what a member is asked for by.
        row: Makes a row of a member.
        get: Finds a member by its name.
    """

    attributes: tuple[str, ...]
    members: Callable[[], Iterable[T]]
    name_of: Callable[[T], str]
    row: Callable[[T], Row]
    get: Callable[[str], T | None]

    def __len__(self) -> int:
        """Count the entities."""
        members = self.members()
        return len(members) if isinstance(members, Sized) else sum(1 for _ in members)

    def rows(
        self, index: int, count: int, sees: Callable[[str], bool] | None = None
    ) -> Iterator[Row]:
        """Yield rows; see `cogwork.plugin.management.Collection`."""
        members = iter(self.members())
        if sees is not None:
            members = (member for member in members if sees(self.name_of(member)))
        first, end = (min(each, sys.maxsize) for each in (index, index + count))
        return map(self.row, islice(members, first, end))

    def find(self, name: str) -> Row | None:
        """Return one entity's row; None where it is not there."""
        member = self.get(name)
        return None if member is None else self.row(member)


def collections_of(container: Container, vhost: VirtualHost) -> Mapping[str, Collection]:
    """List the collections that a virtual host's `$management` shows, by type.

    Those of the mesh are the operator's: the default virtual host's.
    """
    mesh = mesh_view.View(container)
    of_mesh: dict[str, Collection] = {
        BACKUP: _rows_of(rows.BACKUP, partial(_backups, container)),
        LINK: links_of(mesh),
        MESH: mesh_of(mesh, container.id),
        USER: _settings(rows.USER, container, ClusterSettings.users),
        PERMISSION: _settings(rows.PERMISSION, container, ClusterSettings.permissions),
        VHOST: _vhosts(container),
        LIMIT: _settings(rows.LIMIT, container, partial(_limits, container)),
    }
    return {
        "container": _containers(container),
        "connection": _connections(container, vhost),
        "session": _sessions(container, vhost),
        "link": _links(container, vhost),
        "address": _addresses(vhost),
        "queue": _queues(vhost),
        "exchange": _exchanges(vhost),
        "binding": _bindings(vhost),
        "stream": _streams(vhost),
        "node": _nodes(vhost),
        POLICY: _settings(rows.POLICY, container, lambda settings: settings.policies(vhost.name)),
        **({} if vhost.name else of_mesh),
    }


def _backups(container: Container) -> Iterator[Row]:
    return container.backups.rows()


def _settings(
    attributes: tuple[str, ...],
    container: Container,
    members_of: Callable[[ClusterSettings], Iterator[Row]],
) -> Entities[Row]:
    return _rows_of(attributes, lambda: members_of(container.cluster_settings))


def _rows_of(attributes: tuple[str, ...], members: Callable[[], Iterator[Row]]) -> Entities[Row]:
    """Make a collection whose members are rows already."""
    return Entities(
        attributes,
        members,
        lambda it: str(it["name"]),
        lambda it: it,
        lambda name: next((each for each in members() if each["name"] == name), None),
    )


def _limits(container: Container, settings: ClusterSettings) -> Iterator[Row]:
    """Yield the limits, each with who has most of it, and how much."""
    uses = container.uses()
    for row in settings.limits():
        use = uses.get(str(row["name"]))
        most, holder = (None, None) if use is None else (use.has, use.holder.name)
        yield {**row, "most": most, "holder": holder}


def _vhosts(container: Container) -> Entities[str]:
    def members() -> Iterator[str]:
        return container.cluster_settings.vhosts()

    def get(name: str) -> str | None:
        return name if name in members() else None

    return Entities(
        rows.VHOST,
        members,
        lambda name: name,
        lambda name: rows.vhost_row(container, name),
        get,
    )


def links_of(mesh: MeshView) -> Entities[LinkRow]:
    """Make the collection of a container's links to neighbours."""

    def get(name: str) -> LinkRow | None:
        try:
            names = (name, LinkUrl.parse(name).endpoint)
        except BadLinkUrl:
            names = (name, name)
        return next(
            (each for each in mesh.links() if each.url == names[0] or each.endpoint == names[1]),
            None,
        )

    return Entities(mesh_rows.LINK, mesh.links, lambda it: it.url, mesh_rows.link_row, get)


def mesh_of(mesh: MeshView, container_id: str) -> Entities[MeshView]:
    """Make the collection of meshes: the one that the container is in."""
    return Entities(
        mesh_rows.MESH,
        lambda: (mesh,),
        lambda _: container_id,
        mesh_rows.mesh_row,
        lambda name: mesh if name == container_id else None,
    )


def _containers(container: Container) -> Entities[Container]:
    return Entities(
        rows.CONTAINER,
        lambda: (container,),
        lambda it: it.id,
        rows.container_row,
        lambda name: container if name == container.id else None,
    )


def _connections(container: Container, vhost: VirtualHost) -> Entities[Peer]:
    def members() -> Iterable[Peer]:
        if not vhost.name:
            return container.peers.connections.keys()
        return [
            each for each, client in container.peers.connections.items() if client.vhost is vhost
        ]

    def get(name: str) -> Peer | None:
        return next((each for each in members() if rows.connection_name(each) == name), None)

    spid = spid_of(container.incarnation, container.id)
    return Entities(
        rows.CONNECTION,
        members,
        rows.connection_name,
        lambda it: rows.connection_row(spid, it),
        get,
    )


def _sessions(container: Container, vhost: VirtualHost) -> Entities[SessionEndpoint]:
    connections = _connections(container, vhost)

    def members() -> Iterator[SessionEndpoint]:
        return (session for each in connections.members() for session in each.sessions)

    def get(name: str) -> SessionEndpoint | None:
        return next((each for each in members() if rows.session_name(each) == name), None)

    return Entities(rows.SESSION, members, rows.session_name, rows.session_row, get)


def _links(container: Container, vhost: VirtualHost) -> Entities[Link]:
    def sees(link: Link) -> bool:
        return not vhost.name or container.peers.client_of(link.session.connection).vhost is vhost

    def members() -> Iterable[Link]:
        links = container.links.values()
        return links if not vhost.name else [link for link in links if sees(link)]

    def get(name: str) -> Link | None:
        link = container.links.get(name)
        return link if link is not None and sees(link) else None

    return Entities(
        rows.LINK, members, lambda it: cast("Attachment", it.context).link_id, rows.link_row, get
    )


def _addresses(vhost: VirtualHost) -> Entities[AddressEntry]:
    return Entities(
        rows.ADDRESS,
        vhost.space.entries.values,
        lambda it: it.name,
        lambda it: rows.address_row(vhost, it),
        lambda name: vhost.space.entries.get(name.removeprefix("/").encode()),
    )


def _queues(vhost: VirtualHost) -> Entities[tuple[str, Node]]:
    return _nodes_of(vhost, "queue", rows.QUEUE)


def _exchanges(vhost: VirtualHost) -> Entities[DeclaredExchange]:
    exchanges = vhost.exchanges

    def get(address: str) -> DeclaredExchange | None:
        return exchanges.get(name_in(address.removeprefix("/").partition("/")[2]))

    return Entities(
        rows.EXCHANGE,
        lambda: sorted(exchanges, key=lambda each: each.name),
        lambda it: exchanges.address(it.name),
        lambda it: rows.exchange_row(vhost, it),
        get,
    )


def _bindings(vhost: VirtualHost) -> Entities[tuple[str, Binding]]:
    exchanges = vhost.exchanges

    def members() -> Iterator[tuple[str, Binding]]:
        return (
            (exchange.name, binding)
            for exchange in sorted(exchanges, key=lambda each: each.name)
            for binding in exchanges.bindings(exchange.name)
        )

    return Entities(
        rows.BINDING,
        members,
        lambda it: exchanges.address(it[0]),
        lambda it: rows.binding_row(vhost, *it),
        lambda name: next((it for it in members() if exchanges.address(it[0]) == name), None),
    )


def _streams(vhost: VirtualHost) -> Entities[tuple[str, Node]]:
    return _nodes_of(vhost, "stream", rows.STREAM)


def _nodes_of(
    vhost: VirtualHost, kind: str, attributes: tuple[str, ...]
) -> Entities[tuple[str, Node]]:
    def members() -> Iterator[tuple[str, Node]]:
        return (item for item in vhost.nodes.items() if vhost.nodes.kind_at(item[0]) == kind)

    def get(name: str) -> tuple[str, Node] | None:
        found = _node_at(vhost, name)
        return found if found is not None and vhost.nodes.kind_at(found[0]) == kind else None

    return Entities(
        attributes, members, lambda it: it[0], lambda it: rows.storing_row(vhost, *it), get
    )


def _nodes(vhost: VirtualHost) -> Entities[tuple[str, Node]]:
    return Entities(
        rows.NODE,
        vhost.nodes.items,
        lambda it: it[0],
        lambda it: rows.node_row(vhost, *it),
        lambda name: _node_at(vhost, name),
    )


def _node_at(vhost: VirtualHost, name: str) -> tuple[str, Node] | None:
    name = name.removeprefix("/")
    node = vhost.nodes.get(name)
    return None if node is None else (name, node)

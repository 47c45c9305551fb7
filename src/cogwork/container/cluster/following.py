"""Carries out in this container what was declared for all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.container.cluster.raft import FIRST_GROUP, split_name, stream_name
from cogwork.container.vhost.declarations import Declarations as QueueDeclarations
from cogwork.container.vhost.engines import ORB
from cogwork.container.vhost.stream_declarations import StreamDeclarations
from cogwork.plugin.capabilities import Removable, Streaming, replica_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.cluster.declarations import Declaration, Declarations
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.engine.placement import Placement
    from cogwork.replication.service import RaftService

__all__ = ("Following",)

log = logging.getLogger("cogwork")


class Following:
    """Makes and removes the nodes of streams and queues that the cluster knows."""

    def __init__(
        self,
        vhosts: Mapping[str, VirtualHost],
        service: RaftService,
        kept: Callable[[], Iterable[int]],
        placement_of: Callable[[Declaration], Placement | None],
        forget_orb: Callable[[str], object],
    ) -> None:
        """Initialize it with the nodes' places.

        Args:
            vhosts: This container's virtual hosts.
            service: Has the replicas.
            kept: Lists the groups that have a directory here.
            placement_of: Tells who is to hold what is declared; None where it was never moved.
            forget_orb: Gives up what is here of a stream in some container's memory.
        """
        self._vhosts = vhosts
        self._service = service
        self._kept = kept
        self._forget_orb = forget_orb
        self._placement_of = placement_of
        self._is_current = False

    def declared(self, declaration: Declaration) -> None:
        """Make its node, unless it is there."""
        vhost = self._vhosts.get(declaration.vhost)
        if vhost is None:
            return
        node = vhost.nodes.get(_address_of(declaration))
        if self._placement_of(declaration) is not None and _is_shared(node):
            return  # perhaps by a configuration that says where it is, and not where it was first
        try:
            if declaration.kind == "stream":
                StreamDeclarations(vhost).follow(declaration)
            else:
                QueueDeclarations(vhost).declare(declaration.name, declaration.options)
        except (CogworkError, ValueError) as error:
            kind, name = declaration.kind, declaration.name
            # Where another one has its name, that one would be deleted here.
            is_nameless = _address_of(declaration) not in vhost.nodes
            hint = f"; to delete it everywhere, run `cogwork {kind} delete URL {name!r}`"
            log.error(
                "cannot open the cluster's %s %r here: %s%s",
                kind,
                name,
                error,
                hint * is_nameless,
            )

    def deleted(self, declaration: Declaration) -> None:
        """Remove its node, and the replica here.

        What is there for this container alone was in its way, and stays.
        """
        vhost = self._vhosts.get(declaration.vhost)
        if vhost is None:
            return
        address = _address_of(declaration)
        node = vhost.nodes.get(address)
        is_alone = node is not None and not _is_clusters(node)
        if isinstance(node, Removable) and not is_alone:
            node.end_links()
            vhost.remove_node(address)
            vhost.exchanges.drop_stream(address)
        name = stream_name(declaration.kind, declaration.vhost, declaration.name)
        if declaration.options.get("engine") == ORB and not is_alone:
            self._forget_orb(name)
        self._service.remove(name, FIRST_GROUP + declaration.number)

    def renew(self, stream: str) -> None:
        """Open a stream anew whose records have gone with the container that had them."""
        vhost, name = split_name(stream)
        if vhost in self._vhosts:
            StreamDeclarations(self._vhosts[vhost]).renew(f"stream/{name}")

    def moved(self, declaration: Declaration) -> None:
        """Have the replica here opened or given up."""
        placement = self._placement_of(declaration)
        if placement is None:
            return
        name = stream_name(declaration.kind, declaration.vhost, declaration.name)
        group = FIRST_GROUP + declaration.number
        self._service.place(name, group, placement)
        # What is told first may be long ago, and the replica here one that came later.
        if not self._is_current or name in self._service.streams:
            return
        if self._is_left(declaration):
            self._discard({group})
        if declaration.kind == "stream":
            self._open_again(declaration)

    def _open_again(self, declaration: Declaration) -> None:
        """Open a stream whose replica could not be used here, now that it is made anew."""
        vhost = self._vhosts.get(declaration.vhost)
        node = None if vhost is None else vhost.nodes.get(_address_of(declaration))
        if vhost is not None and isinstance(node, Streaming) and node.state == "failed":
            StreamDeclarations(vhost).renew(node.address, "is opened anew")

    def _is_left(self, declaration: Declaration) -> bool:
        """Return whether a replica here would be one that nobody needs any more."""
        placement = self._placement_of(declaration)
        return placement is not None and self._service.own not in placement.holders

    def current(self, declarations: Declarations) -> None:
        """Remove what is left of what was deleted or moved while this container was away.

        A group that the cluster has never given a number to is somebody else's, and stays.
        """
        self._is_current = True
        declared = (*declarations.all("stream"), *declarations.all("queue"))
        known = {FIRST_GROUP + each.number for each in declared if not self._is_left(each)}
        known |= {each.number for each in self._service.streams.values()}
        given = range(FIRST_GROUP + 1, FIRST_GROUP + declarations.next_number)
        self._discard(set(given) - known)

    def _discard(self, groups: set[int]) -> None:
        for group in groups & {*self._kept(), *self._service.unopened}:
            log.info("removing what is left of the deleted group %s", group)
            try:
                self._service.discard(group)
            except OSError as error:
                log.error("cannot remove all of group %s before the next start: %s", group, error)


def _is_shared(node: object) -> bool:
    """Return whether a node can be that of something declared for all."""
    return isinstance(node, Streaming) or replica_of(node) is not None


def _is_clusters(node: object) -> bool:
    """Return whether a node is that of something declared for all."""
    return _is_shared(node) and not (isinstance(node, Streaming) and not node.is_everywhere)


def _address_of(declaration: Declaration) -> str:
    is_stream = declaration.kind == "stream"
    return f"stream/{declaration.name}" if is_stream else declaration.name

"""Carries out in this container what was declared for all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.container.cluster.raft import FIRST_GROUP, KIND, joined_name
from cogwork.container.stream_declarations import StreamDeclarations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.cluster.declarations import Declaration, Declarations
    from cogwork.consensus.replicated.placement import Placement
    from cogwork.consensus.replicated.service import RaftService
    from cogwork.container.virtual_host import VirtualHost

__all__ = ("ENGINE", "Following")

ENGINE = "raft"

log = logging.getLogger("cogwork")


class Following:
    """Makes and removes the nodes of streams that the cluster knows."""

    def __init__(
        self,
        vhosts: Mapping[str, VirtualHost],
        service: RaftService,
        kept: Callable[[], Iterable[int]],
        placement_of: Callable[[Declaration], Placement | None],
    ) -> None:
        """Needs the nodes' places.

        Args:
            vhosts: This container's virtual hosts.
            service: Has the replicas.
            kept: Lists the groups that have a directory here.
            placement_of: Tells who is to hold what is declared; None where it was never moved.
        """
        self._vhosts = vhosts
        self._service = service
        self._kept = kept
        self._placement_of = placement_of
        self._is_current = False

    def declared(self, declaration: Declaration) -> None:
        """Makes a stream's node, unless it is there."""
        vhost = self._vhosts.get(declaration.vhost)
        if vhost is None or declaration.kind != KIND:
            return
        streams, address = StreamDeclarations(vhost), _address_of(declaration)
        if self._placement_of(declaration) is not None and streams.stream(address) is not None:
            return  # perhaps by a configuration that says where it is, and not where it was first
        options = {**declaration.options, "engine": ENGINE}
        try:
            streams.declare(address, options)
        except (CogworkError, ValueError) as error:
            log.error("the stream %s of the cluster is not had here: %s", declaration.name, error)

    def deleted(self, declaration: Declaration) -> None:
        """Removes a stream's node, and the replica here."""
        vhost = self._vhosts.get(declaration.vhost)
        if vhost is None or declaration.kind != KIND:
            return
        address = _address_of(declaration)
        node = StreamDeclarations(vhost).stream(address)
        if node is not None:
            node.end_links()
        vhost.remove_node(address)
        self._service.remove(joined_name(declaration), FIRST_GROUP + declaration.number)

    def moved(self, declaration: Declaration) -> None:
        """Has the replica here opened or given up."""
        placement = self._placement_of(declaration)
        if placement is None or declaration.kind != KIND:
            return
        name, group = joined_name(declaration), FIRST_GROUP + declaration.number
        self._service.place(name, group, placement)
        # What is told first may be long ago, and the replica here one that came later.
        if self._is_current and name not in self._service.streams and self._is_left(declaration):
            self._discard({group})

    def _is_left(self, declaration: Declaration) -> bool:
        """Tells whether a replica here would be one that the stream does without."""
        placement = self._placement_of(declaration)
        return placement is not None and self._service.own not in placement.holders

    def current(self, declarations: Declarations) -> None:
        """Removes what is left of streams that were deleted or moved while this one was away.

        A group that the cluster has never given a number to is somebody else's, and stays.
        """
        self._is_current = True
        streams = declarations.all(KIND)
        known = {FIRST_GROUP + each.number for each in streams if not self._is_left(each)}
        known |= {each.number for each in self._service.streams.values()}
        given = range(FIRST_GROUP + 1, FIRST_GROUP + declarations.next_number)
        self._discard(set(given) - known)

    def _discard(self, groups: set[int]) -> None:
        for group in groups & {*self._kept(), *self._service.unopened}:
            log.info("what is left of a stream that is not here, group %s, is removed", group)
            self._service.discard(group)


def _address_of(declaration: Declaration) -> str:
    return f"stream/{declaration.name}"

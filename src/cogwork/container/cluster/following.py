"""Carries out in this container what was declared for all."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from cogwork.container.stream_declarations import StreamDeclarations
from cogwork.spi.management import ManagementError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.declarations import Declaration
    from cogwork.consensus.replicated.service import RaftService
    from cogwork.container.virtual_host import VirtualHost

__all__ = ("ENGINE", "Following")

ENGINE = "raft"

log = logging.getLogger("cogwork")


class Following:
    """Makes and removes the nodes of streams that the cluster knows."""

    def __init__(self, vhosts: Mapping[str, VirtualHost], service: RaftService) -> None:
        """Needs the nodes' places.

        Args:
            vhosts: This container's virtual hosts.
            service: Has the replicas.
        """
        self._vhosts = vhosts
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def declared(self, declaration: Declaration) -> None:
        """Makes a stream's node, unless it is there."""
        vhost = self._vhosts.get(declaration.vhost)
        if vhost is None or declaration.kind != "stream":
            return
        options = {**declaration.options, "engine": ENGINE}
        try:
            StreamDeclarations(vhost).declare(_address_of(declaration), options)
        except ManagementError as error:
            log.error("the stream %s of the cluster is not had here: %s", declaration.name, error)

    def deleted(self, declaration: Declaration) -> None:
        """Removes a stream's node, and the replica here."""
        vhost = self._vhosts.get(declaration.vhost)
        if vhost is None or declaration.kind != "stream":
            return
        vhost.remove_node(_address_of(declaration))
        name = f"{declaration.vhost}:{declaration.name}" if declaration.vhost else declaration.name
        task = asyncio.ensure_future(self._service.delete(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _address_of(declaration: Declaration) -> str:
    return f"stream/{declaration.name}"

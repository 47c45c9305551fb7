"""The streams of a virtual host as AMQP 0-9-1 knows them: queues that nothing is taken from.

Theory of operation. The stream S is the queue S to a client of AMQP 0-9-1, unless there is a queue
of that name. What its declaration says besides is in the options of its node, so there is nothing
to keep here: one that was made by `cogwork stream create` is the same.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.faults import shown_vhost
from cogwork.container.vhost.engines import VhostEngines
from cogwork.container.vhost.stream_declarations import StreamDeclarations
from cogwork.plugin.engine.errors import ConsensusError, reason_of
from cogwork.plugin.management import ManagementError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.capabilities import Streaming

__all__ = ("BasicStreams",)

PREFIX: Final = "stream/"
QUEUE_PREFIX: Final = "queue/"

OPENING_S: Final = 5.0
"""So long a declaration waits for the engine of its stream."""

LOOK_EVERY_S: Final = 0.02


class BasicStreams:
    """Those of one virtual host."""

    def __init__(self, vhost: VirtualHost) -> None:
        """Initialize it with the virtual host."""
        self._vhost = vhost
        self._declarations = StreamDeclarations(vhost)

    def find(self, name: str) -> Streaming | None:
        """Return the stream that a queue's name stands for; None where it stands for none."""
        return self._vhost.nodes.stream_named(name)

    def address(self, name: str) -> str:
        """Return the address that a queue's name stands for, which permissions are about."""
        return f"{QUEUE_PREFIX if self.find(name) is None else PREFIX}{name}"

    async def declare(self, name: str, options: Mapping[str, Any], makers: Makers) -> Streaming:
        """Make a stream, unless it is there.

        In a cluster it is there for all containers, on replicas; without one it is on the disk of
        this container, or in its memory if there is no data directory.

        Args:
            name: Its name.
            options: As in `[[stream]]`, but for the engine.
            makers: For whom it is made.

        Raises:
            ProtocolError: It cannot be made.
        """
        vhost, engines = self._vhost, self._vhost.engines
        if not isinstance(engines, VhostEngines):
            raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, "this container has no streams")
        address = f"{PREFIX}{name}"
        if ":" in name:
            text = f"cannot make {self._place(name)}: the name of a stream has no colon"
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
        try:
            await engines.demand_majority()
            is_new = self.find(name) is None
            if is_new:
                self._declarations.demand_alone(address)
                home = vhost.container_id if engines.is_shared else None
                given = {**options, "engine": engines.default_kind}
                self._declarations.declare(address, given, home, makers)
        except (ConsensusError, ManagementError) as error:
            raise self._error_of(name, error) from error
        return await self._opened(name, is_new=is_new)

    async def _opened(self, name: str, *, is_new: bool) -> Streaming:
        """Wait until a stream is open, or is known to be away.

        Raises:
            ProtocolError: It cannot be opened.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + OPENING_S
        node = self.find(name)
        while node is not None and node.state == "opening" and loop.time() < until_s:
            await asyncio.sleep(LOOK_EVERY_S)
            node = self.find(name)
        problem = None if node is None else node.problem
        if node is not None and node.state == "failed" and is_new:
            self._declarations.abandon(f"{PREFIX}{name}")
            text = f"cannot make {self._place(name)}: {problem}"
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, text)
        if node is None or node.state == "opening":
            text = f"{self._place(name)} cannot be opened: {problem or 'it was deleted meanwhile'}"
            raise ProtocolError(ReplyCode.INTERNAL_ERROR, text)
        if self._vhost.topology is not None and is_new:
            await self._vhost.topology.reach_members()
        return node

    async def delete(self, name: str) -> None:
        """Delete a stream with its records and its bindings, and end its consumers.

        Raises:
            ExchangeError: The cluster does not answer.
            ProtocolError: It cannot be deleted.
        """
        topology = self._vhost.topology
        try:
            if topology is not None and await topology.is_shared():
                await topology.unbind_all(name)
            await self._declarations.delete(f"{PREFIX}{name}", ends_links=True)
        except (ConsensusError, ManagementError, ValueError) as error:
            raise self._error_of(name, error) from error
        if topology is not None:
            await topology.reach_members()

    async def count(self, node: Streaming) -> tuple[int, int]:
        """Count the records of a stream, and its readers at this container."""
        figures = node.status()
        records = cast("int", figures["records"])
        if node.engine is not None:
            try:
                bounds = await node.engine.bounds()
            except ConsensusError:
                pass  # it is away: as it was seen last
            else:
                records = bounds.next - bounds.first
        return records, cast("int", figures["consumers"])

    def _place(self, name: str) -> str:
        return f"queue '{name}' in vhost '{shown_vhost(self._vhost.name)}'"

    def _error_of(
        self, name: str, error: ConsensusError | ManagementError | ValueError
    ) -> ProtocolError:
        if isinstance(error, ConsensusError):
            text = f"{self._place(name)}: the cluster does not answer: {reason_of(error)}"
            return ProtocolError(ReplyCode.INTERNAL_ERROR, text)
        return ProtocolError(ReplyCode.PRECONDITION_FAILED, f"{self._place(name)}: {error}")

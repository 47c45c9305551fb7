"""Streams on engines that know nothing of the cluster: their declarations, for all containers."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from cogwork.container.cluster.raft import KIND, split_name
from cogwork.plugin.engine.errors import ConsensusError, Unavailable, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.declarations import Value
    from cogwork.container.cluster.cluster import Cluster

__all__ = ("Sharing",)

log = logging.getLogger("cogwork")

CURRENT_TIMEOUT_S = 4.0


class Sharing:
    """Has every container know of a stream."""

    def __init__(self, cluster: Cluster) -> None:
        """Initialize it with a cluster.

        Args:
            cluster: Knows the declarations.
        """
        self._cluster = cluster
        self._withdrawing: set[asyncio.Task[None]] = set()

    async def declare(self, kind: str, stream: str, options: Mapping[str, object]) -> bool:
        """Declare a stream for all containers; what is there with these options stays.

        Returns whether it is new.

        Args:
            kind: Its engine.
            stream: Its name, behind its virtual host's and a colon where it has one.
            options: The declaration's others.

        Raises:
            Unavailable: The cluster has no majority.
            ValueError: It is declared with other options.
        """
        values = cast("Mapping[str, Value]", {"engine": kind, **options})
        is_new = self._cluster.declarations.find(KIND, *split_name(stream)) is None
        try:
            await self._cluster.declare(KIND, *split_name(stream), values)
        except Unknown as error:
            # To declare the same once more changes nothing.
            raise Unavailable(f"the cluster does not answer: {error.reason}") from error
        return is_new

    async def demand_current(self) -> None:
        """Wait a while until it is known what the cluster has declared.

        Raises:
            Unavailable: That takes too long.
        """
        try:
            async with asyncio.timeout(CURRENT_TIMEOUT_S):
                await self._cluster.when_current()
        except TimeoutError:
            text = "this container does not know yet what the cluster has declared"
            raise Unavailable(text) from None

    async def demand_majority(self) -> None:
        """Wait a while until a majority of the cluster answers.

        Raises:
            Unavailable: None does.
        """
        await self._cluster.demand_majority()

    async def delete(self, stream: str) -> None:
        """Have every container let go of a stream.

        Raises:
            ConsensusError: It is not known whether they do.
        """
        await self._cluster.delete(KIND, *split_name(stream))

    def withdraw(self, stream: str) -> None:
        """Have every container let go of a stream soon: whoever calls may be ended by that."""
        task = asyncio.get_running_loop().create_task(self._withdraw(stream))
        self._withdrawing.add(task)
        task.add_done_callback(self._withdrawing.discard)

    async def _withdraw(self, stream: str) -> None:
        try:
            await self.delete(stream)
        except ConsensusError as error:
            log.warning(
                "cannot delete the declaration of stream %s, which cannot be opened: %s",
                stream,
                error,
            )

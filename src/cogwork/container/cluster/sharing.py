"""Streams on engines that know nothing of the cluster: their declarations, for all containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cogwork.consensus.errors import Unavailable, Unknown
from cogwork.container.cluster.raft import KIND, split_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.declarations import Value
    from cogwork.container.cluster.cluster import Cluster

__all__ = ("Sharing",)


class Sharing:
    """Has every container know of a stream."""

    def __init__(self, cluster: Cluster) -> None:
        """Needs a cluster.

        Args:
            cluster: Knows the declarations.
        """
        self._cluster = cluster

    async def declare(self, kind: str, stream: str, options: Mapping[str, object]) -> None:
        """Declares a stream for all containers; what is there with these options stays.

        Args:
            kind: Its engine.
            stream: Its name, behind its virtual host's and a colon where it has one.
            options: The declaration's others.

        Raises:
            Unavailable: The cluster has no majority.
            ValueError: It is declared with other options.
        """
        values = cast("Mapping[str, Value]", {"engine": kind, **options})
        try:
            await self._cluster.declare(KIND, *split_name(stream), values)
        except Unknown as error:
            # To declare the same once more changes nothing.
            raise Unavailable(f"the cluster does not answer: {error.reason}") from error

    async def delete(self, stream: str) -> None:
        """Has every container let go of a stream.

        Raises:
            ConsensusError: It is not known whether they do.
        """
        await self._cluster.delete(KIND, *split_name(stream))

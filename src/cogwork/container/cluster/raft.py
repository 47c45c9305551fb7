"""The engine `raft` in a container: streams that the cluster knows, on replicas that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cogwork.consensus.errors import Unavailable, Unknown
from cogwork.consensus.replicated.engine import CAPABILITIES
from cogwork.consensus.retention import RETENTION_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.declarations import Declaration, Value
    from cogwork.consensus.capabilities import Capabilities
    from cogwork.consensus.replicated.engine import RaftEngine
    from cogwork.consensus.replicated.service import RaftService
    from cogwork.container.cluster.cluster import Cluster

__all__ = (
    "FIRST_GROUP",
    "KIND",
    "ClusteredRaft",
    "open_declared",
    "replicas_of",
    "split_name",
    "stream_name",
)

FIRST_GROUP = 16
"""A declared stream's group is this and its declaration's number."""

REPLICAS = 3
"""So many of the voters hold a stream whose declaration does not say who does."""

KIND = "stream"
"""What streams are in the cluster's declarations."""


def stream_name(kind: str, vhost: str, name: str) -> str:
    """Returns what replicas know something declared by: streams, and the records of queues."""
    prefix = "" if kind == KIND else f"{kind} "
    return f"{prefix}{vhost}:{name}" if vhost else f"{prefix}{name}"


def split_name(stream: str) -> tuple[str, str]:
    """Splits what engines know a stream by: virtual host and name."""
    vhost, colon, name = stream.rpartition(":")
    return (vhost, name) if colon else ("", stream)


def replicas_of(declaration: Declaration, voters: list[str]) -> list[str]:
    """Returns who holds a stream: who is named, or some voters, each in its turn most senior."""
    named = declaration.options.get("replicas")
    if isinstance(named, list) and named:
        return list(named)
    first = declaration.number % len(voters)
    return (voters[first:] + voters[:first])[:REPLICAS]


async def open_declared(
    cluster: Cluster,
    service: RaftService,
    kind: str,
    name: tuple[str, str],
    options: Mapping[str, object],
) -> RaftEngine:
    """Opens the stream of something declared; declares it where it is new.

    Args:
        cluster: Knows the declarations.
        service: Has the replicas.
        kind: What it is.
        name: Its virtual host, and its name there.
        options: The declaration's.

    Raises:
        Unavailable: The cluster has no majority.
        ValueError: It is declared with other options, or one is wrong.
    """
    values = cast("Mapping[str, Value]", options)
    try:
        declaration = await cluster.declare(kind, *name, values)
    except Unknown as error:
        # To declare the same once more changes nothing.
        raise Unavailable(f"the cluster does not answer: {error.reason}") from error
    made: dict[str, object] = {
        "group": FIRST_GROUP + declaration.number,
        "replicas": replicas_of(declaration, cluster.voters),
        **{option: options[option] for option in RETENTION_OPTIONS if option in options},
    }
    return await service.open(stream_name(kind, *name), made)


class ClusteredRaft:
    """The host of the engine `raft`, as the container's nodes see it."""

    def __init__(self, cluster: Cluster, service: RaftService) -> None:
        """Needs a cluster.

        Args:
            cluster: Knows the declarations.
            service: Has the replicas.
        """
        self._cluster = cluster
        self._service = service

    @property
    def capabilities(self) -> Capabilities:
        """What the streams declare."""
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> RaftEngine:
        """Opens a stream; declares it where it is new.

        Args:
            stream: Its name, behind its virtual host's and a colon where it has one.
            options: The declaration's.

        Raises:
            Unavailable: The cluster has no majority.
            ValueError: It is declared with other options, or one is wrong.
        """
        name = split_name(stream)
        return await open_declared(self._cluster, self._service, KIND, name, options)

    async def delete(self, stream: str) -> None:
        """Gives up a stream, here and everywhere."""
        await self._cluster.delete(KIND, *split_name(stream))

    async def close(self) -> None:
        """Lets go of all streams."""
        await self._cluster.close()
        await self._service.close()

"""The engine `raft` in a container: streams that the cluster knows, on replicas that it names."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from cogwork.consensus.errors import Unavailable, Unknown
from cogwork.consensus.raft.membership import Membership
from cogwork.consensus.replicated.engine import CAPABILITIES
from cogwork.consensus.replicated.placement import Placement
from cogwork.consensus.retention import RETENTION_OPTIONS
from cogwork.container.cluster.rooms import Rooms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.cluster.declarations import Declaration, Value
    from cogwork.consensus.capabilities import Capabilities
    from cogwork.consensus.replicated.engine import RaftEngine
    from cogwork.consensus.replicated.service import RaftService
    from cogwork.container.cluster.cluster import Cluster

__all__ = ("FIRST_GROUP", "KIND", "ClusteredRaft", "joined_name", "replicas_of", "split_name")

FIRST_GROUP = 16
"""A declared stream's group is this and its declaration's number."""

REPLICAS = 3
"""So many of the voters hold a stream whose declaration does not say who does."""

KIND = "stream"

log = logging.getLogger("cogwork")

CURRENT_TIMEOUT_S = 5.0
"""So long a stream that is opened waits for what is declared."""

MOVE_LOOK_S = 0.05


def joined_name(declaration: Declaration) -> str:
    """Returns what engines know a stream by: virtual host and name."""
    vhost, name = declaration.vhost, declaration.name
    return f"{vhost}:{name}" if vhost else name


def split_name(stream: str) -> tuple[str, str]:
    """Splits it again."""
    vhost, colon, name = stream.rpartition(":")
    return (vhost, name) if colon else ("", stream)


def replicas_of(declaration: Declaration, voters: list[str]) -> list[str]:
    """Returns who holds a stream first: who is named, or some voters, each in turn most senior."""
    named = declaration.options.get("replicas")
    if isinstance(named, list) and named:
        return list(named)
    first = declaration.number % len(voters)
    return (voters[first:] + voters[:first])[:REPLICAS]


class ClusteredRaft:
    """The host of the engine `raft`, as the container's nodes see it.

    Attributes:
        rooms: Which containers can hold replicas.
    """

    def __init__(self, cluster: Cluster, service: RaftService) -> None:
        """Needs a cluster.

        Args:
            cluster: Knows the declarations.
            service: Has the replicas.
        """
        self.rooms = Rooms(cluster, service)
        self._cluster = cluster
        self._service = service
        self._ending: dict[tuple[int, int], asyncio.Future[None]] = {}
        service.cluster = self

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
        try:
            # What is known before may be long ago: a replica that was given up would come again.
            async with asyncio.timeout(CURRENT_TIMEOUT_S):
                await self._cluster.when_current()
        except TimeoutError:
            raise Unavailable("what is declared is not known yet") from None
        vhost, name = split_name(stream)
        values = cast("Mapping[str, Value]", options)
        try:
            declaration = await self._cluster.declare(KIND, vhost, name, values)
        except Unknown as error:
            # To declare the same once more changes nothing.
            raise Unavailable(f"the cluster does not answer: {error.reason}") from error
        made: dict[str, object] = {
            "group": FIRST_GROUP + declaration.number,
            "replicas": self._placement_of(declaration),
            **{name: options[name] for name in RETENTION_OPTIONS if name in options},
        }
        return await self._service.open(stream, made)

    def placement(self, stream: str) -> Placement | None:
        """Returns who is to hold a stream, and may; None where there is none."""
        declaration = self._cluster.declarations.find(KIND, *split_name(stream))
        return None if declaration is None else self._placement_of(declaration)

    def _placement_of(self, declaration: Declaration) -> Placement:
        moved = self._cluster.declarations.placement(declaration)
        first = replicas_of(declaration, self._cluster.voters)
        return Placement(first, founders=first) if moved is None else moved

    async def move(self, stream: str, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
        """Declares that others are to hold a stream; returns before they do.

        Args:
            stream: Its name.
            voters: Who is to hold it, the most senior first.
            learners: Who is to have a copy that counts for nothing.

        Raises:
            Unavailable: The cluster has no majority, or a container cannot be asked.
            ValueError: There is no such stream, or these cannot hold it.
        """
        declaration = self._cluster.declarations.find(KIND, *split_name(stream))
        if declaration is None:
            raise ValueError(f"there is no stream {stream!r:.200} on replicas")
        Membership(tuple(voters), tuple(learners)).check()
        placement = self._placement_of(declaration)
        for container in (*voters, *learners):
            if container not in placement.holders:
                await self.rooms.demand(container)
        await self._cluster.move(declaration, voters, learners, placement.voters)

    # -- what the streams want of their cluster: see `StreamCluster`

    @property
    def voters(self) -> Sequence[str]:
        """Who holds `$cluster`."""
        return self._cluster.voters

    async def change_members(
        self, stream: str, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Has others hold a stream; returns when they do."""
        await self.move(stream, voters, learners)
        while (placement := self.placement(stream)) is not None and not placement.is_settled:
            await asyncio.sleep(MOVE_LOOK_S)

    def moved(self, stream: str, move: int, floor: tuple[int, int]) -> None:
        """Has it declared that those that are to hold a stream do."""
        declaration = self._cluster.declarations.find(KIND, *split_name(stream))
        if declaration is None or (declaration.number, move) in self._ending:
            return
        key = (declaration.number, move)
        task = asyncio.ensure_future(self._cluster.end_move(declaration, move, floor))
        self._ending[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: tuple[int, int], done: asyncio.Future[None]) -> None:
        del self._ending[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("that a stream was moved is not declared yet: %s", error)

    # -- the end

    async def delete(self, stream: str) -> None:
        """Gives up a stream, here and everywhere."""
        await self._cluster.delete(KIND, *split_name(stream))

    async def close(self) -> None:
        """Lets go of all streams."""
        for task in self._ending.values():
            task.cancel()
        await self._cluster.close()
        await self._service.close()

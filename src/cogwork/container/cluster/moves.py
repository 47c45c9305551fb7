"""Having other containers hold the replicas of what is declared: from wanting it to its end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from cogwork.container.cluster.cluster import GROUP
from cogwork.container.cluster.quorum import demand_replicas
from cogwork.container.cluster.rooms import Rooms
from cogwork.plugin.engine.errors import Unavailable, Unknown
from cogwork.raft.membership import Membership
from cogwork.replication.calls import StreamKey
from cogwork.replication.moving import membership_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.cluster.declarations import Declaration
    from cogwork.container.cluster.cluster import Cluster
    from cogwork.plugin.engine.placement import Placement
    from cogwork.replication.service import RaftService

__all__ = ("Moves",)

LOOK_S = 0.05

log = logging.getLogger("cogwork")


class Moves:
    """What the streams of a container have of their cluster: see `StreamCluster`.

    Attributes:
        rooms: Which containers can hold replicas.
    """

    def __init__(
        self,
        cluster: Cluster,
        service: RaftService,
        first_group: int,
        placement_of: Callable[[Declaration], Placement],
        stream_of: Callable[[Declaration], str],
    ) -> None:
        """Move nothing.

        Args:
            cluster: Knows the declarations.
            service: Has the replicas.
            first_group: A group's number is this and its declaration's.
            placement_of: Tells who is to hold what is declared, and who may.
            stream_of: Tells what replicas know something declared by.
        """
        self.rooms = Rooms(cluster, service)
        self._cluster = cluster
        self._service = service
        self._first_group = first_group
        self._placement_of = placement_of
        self._stream_of = stream_of
        self._ending: dict[tuple[int, int], asyncio.Future[None]] = {}
        self._is_closed = False

    @property
    def voters(self) -> Sequence[str]:
        """Who holds `$cluster`."""
        return self._cluster.voters

    async def move(
        self, declaration: Declaration, voters: Sequence[str], learners: Sequence[str] = ()
    ) -> None:
        """Declare that others are to hold something; return before they do.

        Args:
            declaration: What.
            voters: Who is to hold it, in order of leader priority.
            learners: Who is to have a copy that counts for nothing.

        Raises:
            Unavailable: The cluster has no majority, or those that hold it are none, and the text
                says who is missing; or a container cannot be asked.
            ValueError: These cannot hold it.
        """
        Membership(tuple(voters), tuple(learners)).check()
        await self._cluster.demand_majority()
        placement = self._placement_of(declaration)
        await self._demand_replicas(declaration, placement)
        for container in (*voters, *learners):
            if container not in placement.holders:
                await self.rooms.demand(container)
        try:
            await self._cluster.move(declaration, voters, learners, placement.voters)
        except Unknown as error:
            # To declare the same once more changes nothing.
            raise Unavailable(f"the cluster does not answer: {error.reason}") from error

    async def _demand_replicas(self, declaration: Declaration, placement: Placement) -> None:
        """See that what is to be moved can be: whoever gets it has it from a majority.

        Raises:
            Unavailable: There is none; the text says who is missing.
        """
        key = StreamKey(self._stream_of(declaration), self._first_group + declaration.number)
        voters = placement.voters if placement.is_settled else placement.holders
        try:
            await demand_replicas(self._service, key, placement.holders, voters)
        except Unavailable as error:
            what = f"{declaration.kind} {declaration.name!r:.200}"
            raise Unavailable(f"{what} cannot be moved now: {error.reason}") from error

    async def move_primaries(self, voters: Sequence[str]) -> None:
        """Declare that others are to hold the cluster's declarations; return before they do.

        Args:
            voters: Who is to hold them, in order of leader priority.

        Raises:
            Unavailable: The cluster has no majority, or a container cannot be asked.
            ValueError: These cannot hold them.
        """
        Membership(tuple(voters)).check()
        await self._cluster.demand_majority()
        for container in voters:
            if container not in self._cluster.voters:
                await self.rooms.demand(container)
        await self._cluster.move_primaries(voters)

    async def change_members(
        self, group: int, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Have others hold a stream; return when they do.

        Raises:
            Unavailable: It cannot be declared now, or something came between.
            ValueError: There is no such stream, or these cannot hold it.
        """
        declaration = self._declaration(group)
        if declaration is None:
            raise ValueError(f"nothing that is declared has the group {group}")
        await self.move(declaration, voters, learners)
        while not self._is_done(declaration, Membership(tuple(voters), tuple(learners))):
            await asyncio.sleep(LOOK_S)

    def _is_done(self, declaration: Declaration, wanted: Membership) -> bool:
        """Return whether these hold what is declared.

        Raises:
            Unavailable: They are not to any more.
        """
        if self._is_closed:
            raise Unavailable("the container is stopping")
        if self._cluster.declarations.numbered(declaration.number) is None:
            raise Unavailable(f"{declaration.kind} {declaration.name!r:.200} was deleted")
        placement = self._placement_of(declaration)
        if membership_of(placement) != wanted:
            raise Unavailable("another move has taken its place")
        return placement.is_settled

    def moved(self, group: int, move: int, floor: tuple[int, int]) -> None:
        """Have it declared that those that are to hold a stream do."""
        declaration = self._declaration(group)
        key = (group, move)
        if key in self._ending:
            return
        if group == GROUP:
            work = self._cluster.end_move_of_primaries(move, floor)
        elif declaration is not None:
            work = self._cluster.end_move(declaration, move, floor)
        else:
            return
        task = asyncio.ensure_future(work)
        self._ending[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: tuple[int, int], done: asyncio.Future[None]) -> None:
        del self._ending[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("cannot declare yet that a stream has moved: %s", error)

    def _declaration(self, group: int) -> Declaration | None:
        return self._cluster.declarations.numbered(group - self._first_group)

    def close(self) -> None:
        """Declare nothing any more."""
        self._is_closed = True
        for task in self._ending.values():
            task.cancel()

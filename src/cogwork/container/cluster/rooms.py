"""Which containers can hold one replica more: each is asked, as nobody else knows of its disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import ConsensusError
from cogwork.replication.calls import GetRoom, RoomIs, StreamKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cogwork.container.cluster.cluster import Cluster
    from cogwork.replication.service import RaftService

__all__ = ("Rooms",)

ANSWER_TIMEOUT_S = 0.5
ATTEMPTS = 3
"""A question may be lost on its way."""

NO_STREAM = StreamKey("")


class Rooms:
    """Asks containers."""

    def __init__(self, cluster: Cluster, service: RaftService) -> None:
        """Initialize it; it knows nothing.

        Args:
            cluster: The one that they have to be in.
            service: Carries the questions.
        """
        self._cluster = cluster
        self._service = service

    async def demand(self, container: str) -> None:
        """See that a container can hold a replica.

        Raises:
            ConsensusError: It does not answer.
            ValueError: It cannot; the text says why.
        """
        room = await self._ask(container)
        if room.problem:
            raise ValueError(f"container {container!r:.80} can hold no replica: {room.problem}")

    async def demand_all(self, containers: Sequence[str]) -> None:
        """See that containers which are to hold something new are in this cluster.

        A primary that does not answer may be away for a while: the others begin without it.

        Raises:
            ValueError: One is not, or cannot hold a replica, or does not answer; the text says
                which and what to do.
        """
        rooms = await asyncio.gather(*map(self._ask, containers), return_exceptions=True)
        for container, room in zip(containers, rooms, strict=True):
            if isinstance(room, BaseException):
                if not isinstance(room, ConsensusError):
                    raise room
                problem = "" if container in self._cluster.voters else str(room)
            else:
                problem = room.problem
            if problem:
                raise ValueError(
                    f"container {container!r:.80} can hold no replica: {problem}"
                    f"{self._what_to_configure(containers)}"
                )

    def _what_to_configure(self, containers: Sequence[str]) -> str:
        voters = self._cluster.voters
        if set(containers) <= set(voters):
            return ""
        listed = ", ".join(f'"{each}"' for each in containers)
        return (
            f". The primaries of this cluster are {', '.join(voters)}: for replicas elsewhere, "
            f"give all of these containers a data directory and the same [cluster] primaries, "
            f"such as [{listed}], or start each with --primaries {','.join(containers)}"
        )

    async def free(self, containers: Iterable[str]) -> dict[str, int]:
        """Ask containers; return those that can hold a replica, with how many they have."""
        asked = list(containers)
        answers = await asyncio.gather(*map(self._ask, asked), return_exceptions=True)
        return {
            container: answer.replicas
            for container, answer in zip(asked, answers, strict=True)
            if isinstance(answer, RoomIs) and not answer.problem
        }

    async def _ask(self, container: str) -> RoomIs:
        voters = self._cluster.voters
        for attempt in range(ATTEMPTS):
            try:
                return await self._service.ask(
                    container,
                    lambda number, key: GetRoom(number, key, voters),
                    RoomIs,
                    NO_STREAM,
                    ANSWER_TIMEOUT_S,
                )
            except ConsensusError:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError

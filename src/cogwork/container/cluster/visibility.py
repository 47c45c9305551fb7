"""Who declares something waits a moment until it is so at every linked container, too.

Theory of operation. A client that has declared a queue here may go on at another container at once.
So the answer leaves once all members that can be reached say that they have applied the
declaration, or a quarter of a second later: one that is slow, or is just lost, holds nobody up for
longer. A member is asked one thing at a time; who comes meanwhile shares the next question.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import ConsensusError
from cogwork.replication.calls import AppliedIs, GetApplied, StreamKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.container.cluster.cluster import Cluster
    from cogwork.replication.service import RaftService

__all__ = ("Visibility",)

LONGEST_S = 0.25
"""So long an answer is kept for the sake of other containers."""

NO_STREAM = StreamKey("")


class Visibility:
    """Knows how far other members have applied the declarations."""

    def __init__(
        self, cluster: Cluster, service: RaftService, linked: Callable[[], Iterable[str]]
    ) -> None:
        """Ask nobody yet.

        Args:
            cluster: Has the declarations.
            service: Carries the questions.
            linked: Lists the containers that there is a way to.
        """
        self._cluster = cluster
        self._service = service
        self._linked = linked
        self._applied: dict[str, int] = {}
        self._waiting: dict[str, dict[asyncio.Future[None], int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def reach(self, end: int) -> None:
        """Wait until every linked member has applied all before an offset, but not for long."""
        own, known = self._service.own, self._cluster.declarations.supports
        late = [
            each
            for each in self._linked()
            if each != own and each in known and self._applied.get(each, 0) < end
        ]
        if late:
            waits = [self._until(each, end) for each in late]
            await asyncio.wait(waits, timeout=LONGEST_S)
            for each in waits:
                each.cancel()

    def _until(self, member: str, end: int) -> asyncio.Future[None]:
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(member)
        if waiting is None:
            waiting = self._waiting[member] = {}
            task = asyncio.get_running_loop().create_task(self._ask(member, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waiting[reached] = end
        return reached

    async def _ask(self, member: str, waiting: dict[asyncio.Future[None], int]) -> None:
        """Ask a member as long as anybody waits for it."""
        try:
            while waiting:
                ask = partial(GetApplied, next=max(waiting.values()))
                with_answer = self._service.ask(member, ask, AppliedIs, NO_STREAM, LONGEST_S)
                try:
                    self._applied[member] = (await with_answer).next
                except ConsensusError:
                    await asyncio.sleep(LONGEST_S / 10)  # it has no time, or no way
                self._release(waiting, self._applied.get(member, 0))
        finally:
            del self._waiting[member]

    @staticmethod
    def _release(waiting: dict[asyncio.Future[None], int], applied: int) -> None:
        for reached, end in list(waiting.items()):
            if reached.done() or end <= applied:
                del waiting[reached]
                if not reached.done():
                    reached.set_result(None)

    async def close(self) -> None:
        """Ask nobody any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

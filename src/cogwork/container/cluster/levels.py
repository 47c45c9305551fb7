"""Sees to it that the cluster's feature level rises once every member knows the higher one.

While the level is 1, nothing new may be committed: versions of then would refuse it by themselves.
So whoever leads asks the members, by the question which cluster they are in; a version from before
there were levels answers without one. From level 2 on, members announce what they know by a
command, and those that are away count, too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.cluster.declarations import ANNOUNCED_LEVEL
from cogwork.cluster.levels import HIGHEST_LEVEL, lacking
from cogwork.container.cluster.cluster import STREAM
from cogwork.plugin.engine.errors import ConsensusError, Unknown
from cogwork.replication.calls import GetIdentity, IdentityIs, StreamKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.container.cluster.cluster import Cluster
    from cogwork.replication.service import RaftService

__all__ = ("Levels",)

LOOK_S = 2.0

ANSWER_TIMEOUT_S = 2.0

NO_STREAM = StreamKey("")

log = logging.getLogger("cogwork")


class Levels:
    """Owned by the container's replication."""

    def __init__(
        self,
        cluster: Cluster,
        service: RaftService,
        uuid: Callable[[], str],
        reachable: Callable[[], Iterable[str]],
    ) -> None:
        """Look at nothing yet.

        Args:
            cluster: Whose level it is.
            service: Carries the questions.
            uuid: Returns the cluster's.
            reachable: Lists the containers that there is a way to.
        """
        self._cluster = cluster
        self._service = service
        self._uuid = uuid
        self._reachable = reachable
        self._task: asyncio.Task[None] | None = None
        self._told: list[str] = []

    def start(self) -> None:
        """Begin to look, again and again."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def leave(self) -> None:
        """Take back what this container has announced: it leaves for good, and holds nobody up."""
        await self.close()
        if self._service.own not in self._cluster.declarations.supports:
            return
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._cluster.announce(self._service.own, 0)
        except (CogworkError, TimeoutError) as error:
            log.warning(
                "the cluster still counts this container where its feature level rises: %s",
                str(error) or "it does not answer",
            )

    async def forget(self, container: str) -> None:
        """Take back what a container has announced that is gone for good, and cannot do so itself.

        It announces itself again if it comes back.

        Raises:
            ConsensusError: It is not known, or not at all.
            ValueError: It is not gone, is a primary, or is not counted at all.
        """
        counted = self._cluster.declarations.supports
        if container not in counted:
            known = ", ".join(sorted(counted)) or "nobody"
            raise ValueError(
                f"{container!r:.80} has announced no feature level: expected one of {known}"
            )
        if container in self._cluster.voters:
            raise ValueError(
                f"{container!r:.80} is a primary: run `cogwork cluster move` to have others instead"
            )
        if container == self._service.own or container in self._reachable():
            raise ValueError(
                f"{container!r:.80} is there: stop it first, or run `cogwork leave` at it"
            )
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._cluster.announce(container, 0)
        except TimeoutError:
            text = f"nobody has answered within {ANSWER_TIMEOUT_S:g} s"
            raise Unknown(text) from None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except (CogworkError, OSError, ValueError) as error:
                log.debug("the feature level stays as it is for now: %s", error)

    async def look(self) -> None:
        """Announce what this container knows; raise the level, where it leads and all know more.

        Raises:
            ConsensusError: The cluster does not answer.
            ValueError: The cluster refuses it.
        """
        if not self._cluster.is_current:
            return
        if self._service.leads(STREAM):
            while self._cluster.declarations.level < HIGHEST_LEVEL and await self._raise():
                pass  # one after the other, while all know the next one
            await self._cluster.keep_level()
        declarations = self._cluster.declarations
        own = self._service.own
        if (
            declarations.level >= ANNOUNCED_LEVEL
            and declarations.supports.get(own) != HIGHEST_LEVEL
        ):
            await self._cluster.announce(own, HIGHEST_LEVEL)

    async def _raise(self) -> bool:
        """Raise the level by one, where all know the next one; tell whether they do."""
        declarations, voters = self._cluster.declarations, self._cluster.voters
        level = declarations.level + 1
        supports, silent = await self._ask()
        members = {*voters, *silent, *supports, *declarations.supports}
        without = lacking(members, declarations.supports | supports, level)
        if without:
            if without != self._told:
                log.info(
                    "the cluster's feature level stays %d until %s can do level %d, and %s linked",
                    *(level - 1, ", ".join(without), level, "is" if len(without) == 1 else "are"),
                )
            self._told = without
            return False
        await self._cluster.raise_level(level, supports)
        log.info("the cluster's feature level is %d", level)
        return True

    async def _ask(self) -> tuple[dict[str, int], list[str]]:
        """Return what members say that they know, and who is there and says nothing."""
        own = self._service.own
        asked = [each for each in {*self._reachable(), *self._cluster.voters} if each != own]
        found = await asyncio.gather(*map(self._ask_one, asked))
        supports = {own: HIGHEST_LEVEL}
        for name, answer in zip(asked, found, strict=True):
            if answer is not None and answer.uuid == self._uuid():
                supports[name] = answer.level
        silent = [name for name, answer in zip(asked, found, strict=True) if answer is None]
        return supports, silent

    async def _ask_one(self, container: str) -> IdentityIs | None:
        try:
            return await self._service.ask(
                container, GetIdentity, IdentityIs, NO_STREAM, ANSWER_TIMEOUT_S
            )
        except ConsensusError:
            return None

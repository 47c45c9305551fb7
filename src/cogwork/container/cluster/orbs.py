"""The engine `orb` in a cluster: each stream in the memory of one container, and used by all.

Theory of operation. The declaration says which container has the stream, its *home*. There it is
kept by the engine as ever, and served to others; elsewhere it is opened as a stream on replicas of
which the only one is there. What that one has goes with its process: in its next life the stream is
another one, under a name of its own, and whoever had the old one open begins again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.engines.orb import CAPABILITIES, OrbHost
from cogwork.plugin.engine.errors import Unavailable
from cogwork.replication.engine import RaftEngine
from cogwork.replication.proxied_engine import ProxiedEngine, Unmarked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Engine
    from cogwork.replication.service import RaftService

__all__ = ("HOME", "ClusteredOrb")

HOME = "home"
"""The option that names the container."""

NO_GROUP = 2
"""Of streams that are no group: for the service they need a number, which no log has."""

LOOK_S = 1.0
"""How often it is looked whether a home is in another life."""


class DistantOrb(RaftEngine):
    """A stream in another container's memory."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""
        return CAPABILITIES


class ClusteredOrb:
    """The host of the engine `orb`, as the container's nodes see it."""

    def __init__(
        self,
        own: str,
        service: RaftService,
        life_of: Callable[[str], int],
        renewed: Callable[[str], object],
    ) -> None:
        """Start with no streams yet.

        Args:
            own: This container's id.
            service: Carries calls to other containers, and theirs here.
            life_of: Tells when a container began its present life; 0 where it is not known.
            renewed: Called with the name of a stream whose home is in another life.
        """
        self._own = own
        self._service = service
        self._life_of = life_of
        self._renewed = renewed
        self._local = OrbHost()
        self._served: dict[str, str] = {}
        self._distant: dict[str, tuple[str, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares."""
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> Engine:
        """Open a stream; make it where it is new.

        Args:
            stream: Its name, behind its virtual host's and a colon where it has one.
            options: The declaration's; without `home` it is this container's alone.

        Raises:
            Unavailable: Its home cannot be reached.
            ValueError: An option is wrong.
        """
        rest = {name: value for name, value in options.items() if name != HOME}
        home = options.get(HOME)
        if not isinstance(home, str):
            return await self._local.open(stream, rest)
        if home != self._own:
            return await self._open_distant(stream, home)
        engine = await self._local.open(stream, rest)
        if stream not in self._served:
            self._served[stream] = _name(stream, self._life_of(self._own))
            proxied = ProxiedEngine(await self._local.open(stream, rest), self._own)
            self._service.request_handler.serve(self._served[stream], proxied)
        return Unmarked(engine, self._own)

    async def _open_distant(self, stream: str, home: str) -> Engine:
        life = self._life_of(home)
        if not life:
            raise Unavailable(f"container {home}, which has it in memory, cannot be reached")
        name = _name(stream, life)
        await self._service.open(name, {"group": NO_GROUP, "replicas": [home]})
        self._distant[stream] = home, life
        self._look_later()
        return DistantOrb(self._service.streams[name])

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Have streams opened anew whose home has been started anew."""
        self._timer = None
        for stream, (home, life) in list(self._distant.items()):
            if self._life_of(home) not in {0, life}:
                self._forget_distant(stream)
                self._renewed(stream)
        if self._distant:
            self._look_later()

    def _forget_distant(self, stream: str) -> None:
        _, life = self._distant.pop(stream)
        self._service.remove(_name(stream, life), NO_GROUP)

    async def delete(self, stream: str) -> None:
        """Give up a stream here: with its records where this is its home."""
        if stream in self._distant:
            self._forget_distant(stream)
        name = self._served.pop(stream, None)
        if name is not None:
            await self._service.request_handler.unserve(name)
        await self._local.delete(stream)

    async def close(self) -> None:
        """Let go of all streams, which are gone with it."""
        if self._timer is not None:
            self._timer.cancel()
        for stream in list(self._served):
            await self.delete(stream)
        await self._local.close()


def _name(stream: str, life: int) -> str:
    """Return what containers know a stream in memory by, in one life of its home."""
    return f"orb {life:x} {stream}"

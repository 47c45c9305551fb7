"""The engines that keep this container's streams: one host of each kind, made when it is needed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, cast

from cogwork.amqp.errors import CogworkError
from cogwork.engines.registry import engines, factory_of
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.container.cluster.sharing import Sharing
    from cogwork.plugin.engine.contract import Engine, EngineHost
    from cogwork.plugin.engine.placement import Placement

__all__ = ("CLUSTERED", "ORB", "RAFT", "EngineHosts", "VhostEngines")

RAFT, ORB = "raft", "orb"

CLUSTERED = frozenset({RAFT})
"""Engines that declare their streams for all containers of a cluster themselves."""

log = logging.getLogger("cogwork")


class ClusteredHost(Protocol):
    """The host of an engine whose streams can be moved."""

    def placement(self, stream: str) -> Placement | None:
        """Return who is to hold a stream; None where there is none."""

    async def move(self, stream: str, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Declare that others are to hold a stream."""


class EngineHosts:
    """The hosts, by the engine's name. Owned by the container.

    Attributes:
        sharing: Tells other containers of streams; None where there is no cluster.
    """

    def __init__(
        self, container_id: str, options: Mapping[str, Mapping[str, object]] | None = None
    ) -> None:
        """Start with none yet.

        Args:
            container_id: Whose they are.
            options: What the configuration says of each engine.
        """
        self._container_id = container_id
        self._options = options or {}
        self._hosts: dict[str, EngineHost] = {}
        self.sharing: Sharing | None = None

    def add(self, kind: str, host: EngineHost) -> None:
        """Give an engine a host that was made elsewhere."""
        self._hosts[kind] = host

    def host(self, kind: str) -> EngineHost:
        """Return an engine's host.

        Raises:
            ValueError: There is no such engine, it cannot be loaded, or its options are wrong.
        """
        host = self._hosts.get(kind)
        if host is None:
            factory = factory_of(kind)
            if factory is None:
                known = ", ".join(self.kinds)
                raise ValueError(f"there is no engine {kind!r:.80}: there are {known}")
            options = self._options.get(kind, {})
            host = factory(EngineContext(options, self._container_id, log.info, log.warning))
            self._hosts[kind] = host
        return host

    @property
    def kinds(self) -> list[str]:
        """The names of the engines that are installed, or that the configuration names."""
        return sorted({*engines(), *self._hosts, *self._options})

    async def close(self) -> None:
        """Let go of all streams."""
        hosts, self._hosts = self._hosts, {}
        for kind, host in hosts.items():
            try:
                await host.close()
            except CogworkError:
                pass  # what it keeps elsewhere is away
            except Exception as error:  # a plug-in's: the others are closed nevertheless
                log.exception("engine %s: cannot close it: %r", kind, error)


class VhostEngines:
    """The engines as one virtual host's nodes see them; see `cogwork.plugin.engine.engines`."""

    def __init__(self, hosts: EngineHosts, vhost: str) -> None:
        """Initialize it with the hosts.

        Args:
            hosts: The container's.
            vhost: The virtual host's name, empty for the default one: part of streams' names.
        """
        self._hosts = hosts
        self._prefix = f"{vhost}:" if vhost else ""

    @property
    def kinds(self) -> list[str]:
        """The names of those that are installed."""
        return self._hosts.kinds

    async def open(
        self,
        kind: str,
        stream: str,
        options: Mapping[str, object],
        capture: Sequence[str] = (),
        *,
        is_shared: bool = False,
    ) -> Engine:
        """Open a stream; make it where it is new."""
        if ":" in stream:
            # With a colon it could be that of another virtual host, whose streams have it in front.
            raise ValueError(f"the name of a stream has no colon: {stream!r:.200}")
        host, name = self._hosts.host(kind), self._prefix + stream
        declared = {**options, "capture": list(capture)} if capture else options
        if kind in CLUSTERED:
            return await host.open(name, declared)
        sharing = self._hosts.sharing if is_shared else None
        is_new = sharing is not None and await sharing.declare(kind, name, declared)
        try:
            return await host.open(name, options)
        except ValueError:
            if sharing is not None and is_new:  # nobody can have what the engine does not take
                sharing.withdraw(name)
            raise

    @property
    def default_kind(self) -> str:
        """The engine whose streams outlive this container, where there is a place for them."""
        return ORB if self._hosts.sharing is None else RAFT

    @property
    def is_shared(self) -> bool:
        """Whether what is declared here is declared for all containers of a cluster."""
        return self._hosts.sharing is not None

    async def demand_majority(self) -> None:
        """Wait a while until it is known what the cluster has declared, and a majority answers.

        Raises:
            Unavailable: That takes too long.
        """
        if self._hosts.sharing is not None:
            await self._hosts.sharing.demand_current()
            await self._hosts.sharing.demand_majority()

    def is_clustered(self, kind: str) -> bool:
        """Return whether an engine declares its streams for all containers of a cluster itself."""
        return kind in CLUSTERED

    def placement(self, kind: str, stream: str) -> Placement | None:
        """Return who is to hold a stream; None where the engine's streams stay where they are."""
        return self._clustered(kind).placement(self._prefix + stream) if kind in CLUSTERED else None

    async def move(
        self, kind: str, stream: str, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Declare that others are to hold a stream; return before they do."""
        if kind not in CLUSTERED:
            raise Unsupported(f"move a stream: the engine {kind} keeps it where it is")
        await self._clustered(kind).move(self._prefix + stream, voters, learners)

    def _clustered(self, kind: str) -> ClusteredHost:
        return cast("ClusteredHost", self._hosts.host(kind))

    async def delete(self, kind: str, stream: str, *, is_shared: bool = False) -> None:
        """Give up a stream with all its records."""
        sharing = self._hosts.sharing if is_shared else None
        if sharing is not None:
            await sharing.demand_majority()  # else it would be declared still, without its records
        # The container that has a stream in its memory gives it up as it hears of it.
        if sharing is None or kind != ORB:
            await self._hosts.host(kind).delete(self._prefix + stream)
        if sharing is not None:
            await sharing.delete(self._prefix + stream)

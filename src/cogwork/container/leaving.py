"""How a container leaves the mesh for good: clients first, then items, replicas, then itself.

Clients that there is no other place for, or that want none, go on until the end. So when all else
has gone they get no more credit for queues, and what they have sent meanwhile is moved, too.

Where one stage fails the next ones come nevertheless, and the end: a container that stayed half-way
out would serve nobody, and whoever looks on would wait for ever. What it has then counts as left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cogwork.container.federation.moving import Mover, items_of
from cogwork.plugin.capabilities import Shareable, replica_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cogwork.container.cluster.departure import Departure
    from cogwork.container.connections.balance import Balance
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("Leaving",)

MOVE_TIMEOUT_S = 300.0
"""Items that consumers have not settled by then stay, and are named in the log."""

LATE_TIMEOUT_S = 10.0
"""The same for what clients that stay have sent since then."""

UNDER_WAY_S = 0.1
"""What clients have sent before they hear that they have no credit any more comes within it."""

REPLICAS_TIMEOUT_S = 600.0
"""What has not got to other containers by then stays here; it gets there nevertheless if the other
replicas are there."""

FAREWELL_S = 0.5
"""So long the others take to go other ways before the links are closed, and whoever looks on to see
that it is done."""

log = logging.getLogger("cogwork")


class Leaving:
    """One container's way out. Owned by the container.

    Attributes:
        phase: What it is doing: empty before it has begun, `clients`, `items`, `replicas`, `links`
            or `done`.
    """

    def __init__(
        self,
        mesh: MeshService,
        balance: Balance,
        vhosts: Iterable[VirtualHost],
        departure: Departure,
        *,
        data_dir: str | None,
        on_left: Callable[[], None],
    ) -> None:
        """Initialize it; it does nothing yet.

        Args:
            mesh: The other containers.
            balance: Sends clients there.
            vhosts: Have the queues.
            departure: Moves the replicas of streams.
            data_dir: Where those on disk are.
            on_left: Called at the end, to stop the container.
        """
        self.phase = ""
        self._mesh = mesh
        self._balance = balance
        self._vhosts = list(vhosts)
        self._departure = departure
        self._data_dir = data_dir
        self._on_left = on_left
        self._faults: list[str] = []
        self._movers = [Mover(mesh) for _ in self._vhosts]
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; without effect where it has begun."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._leave())

    @property
    def facts(self) -> dict[str, object]:
        """How far it is, in plain values; `kept` are those of the items left that are on disk."""
        queues = self._queues()
        problems = [
            *(each.problem for each in self._movers),
            self._departure.problem,
            *self._faults,
        ]
        return {
            "phase": self.phase,
            "moved": sum(each.moved for each in self._movers),
            "left": sum(map(items_of, queues)),
            "kept": sum(items_of(node) for node in queues if node.is_on_disk),
            "data_dir": self._data_dir,
            "replicas_moved": self._departure.moved,
            "replicas_left": self._departure.left,
            "problem": "; ".join(filter(None, problems)) or None,
        }

    def _queues(self) -> list[Shareable]:
        return [
            node
            for vhost in self._vhosts
            for node in vhost.nodes.storing.values()
            if isinstance(node, Shareable) and not _is_with_others(node)
        ]

    async def _leave(self) -> None:
        log.info("leaving the mesh")
        self._mesh.is_leaving = True
        self.phase = "clients"
        with self._noted("sending clients away"):
            self._balance.drain()
            self._balance.send_away()
            self._mesh.core.flush()
        await self._move_items(MOVE_TIMEOUT_S)
        self.phase = "replicas"
        with self._noted("moving replicas"):
            await self._departure.run(REPLICAS_TIMEOUT_S)
        with self._noted("stopping producers"):
            await self._move_late()
        self.phase = "links"
        with self._noted("closing links"):
            self._mesh.leave()
            self._mesh.core.flush()
            await asyncio.sleep(FAREWELL_S)
        self.phase = "done"
        with self._noted("reporting the result"):
            self._tell()
        await asyncio.sleep(FAREWELL_S)
        self._on_left()

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """Go on where a stage fails; what went wrong is told."""
        try:
            yield
        except Exception as error:  # whatever it is, the next stage comes
            log.exception("leaving the mesh: %s failed", what)
            self._faults.append(f"{what} failed: {error!r:.200}")

    def _tell(self) -> None:
        facts = self.facts
        log.info(
            "left the mesh: %d items moved, %d left, of which %d stay on disk; %d replicas moved, "
            "%d left",
            *(facts[key] for key in ("moved", "left", "kept", "replicas_moved", "replicas_left")),
        )

    async def _move_items(self, timeout_s: float) -> None:
        self.phase = "items"
        deadline_s = time.monotonic() + timeout_s
        both = zip(self._movers, self._vhosts, strict=True)
        await asyncio.gather(*(self._move_all(mover, vhost, deadline_s) for mover, vhost in both))

    async def _move_all(self, mover: Mover, vhost: VirtualHost, deadline_s: float) -> None:
        """Move one virtual host's; where that fails the others' move on."""
        with self._noted(f"moving the items of virtual host {vhost.name!r}"):
            await mover.move_all(vhost, deadline_s)

    async def _move_late(self) -> None:
        """Move what clients that stay have sent meanwhile, and have them send no more."""
        could_send = [node.end_credit() for node in self._queues()]
        if any(could_send):
            self._mesh.core.flush()
            await asyncio.sleep(UNDER_WAY_S)
        both = zip(self._movers, self._vhosts, strict=True)
        if any(mover.has_more_since(vhost) for mover, vhost in both):
            await self._move_items(LATE_TIMEOUT_S)


def _is_with_others(node: Shareable) -> bool:
    """Return whether other containers have a queue's items, too, or have them alone."""
    replica = replica_of(node)
    return replica is not None and (replica.home is None or replica.epoch is None)

"""Several linked containers in one event loop."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import cogwork
from cogwork.config.reading import parse
from cogwork.container.container import Container

from .stories import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")

HEARTBEAT_S = 0.2


class Linked:
    """Containers, and a client for each that asks for one.

    Attributes:
        containers: By id.
        clients: Those that `client` made, by container and virtual host.
    """

    def __init__(self, stack: AsyncExitStack, configuration: str) -> None:
        self.containers: dict[str, Container] = {}
        self.clients: dict[tuple[str, str], cogwork.Client] = {}
        self._stack = stack
        self._configuration = configuration

    async def start(
        self, name: str, dials: Iterable[str] = (), configuration: str = "", head: str = ""
    ) -> None:
        """Start a container on a free port, linked with others that run; `head` is of no table."""
        links = "".join(f'[[link]]\nurl = "{self.address(each)}"\n' for each in dials)
        text = (
            f'id = "{name}"\n{head}[[listen]]\nport = 0\n{links}\n'
            f"[mesh]\nheartbeat_s = {HEARTBEAT_S}\n"
            f"{self._configuration}\n{configuration}"
        )
        container = Container(parse(text, "test"))
        container.mesh.silence_s = 0.0  # no empty frames: tests count what goes over a link
        await container.start()
        self.containers[name] = container
        self._stack.push_async_callback(self.stop, name)

    async def stop(self, name: str) -> None:
        """Stop a container, where that has not been done."""
        container = self.containers.pop(name, None)
        if container is not None:
            await container.stop(drain_timeout_s=0)

    def cut_off(self, name: str) -> None:
        """Have all of a container's links fail, and dial no more: the others see it die."""
        mesh = self.containers[name].mesh
        for dialler in mesh.diallers:
            dialler.stop()
        for peer_link in mesh.peer_links:
            peer_link.data.connection.on_lost(104)
            peer_link.control.connection.on_lost(104)

    def join_again(self, name: str) -> None:
        """Have a container that was cut off dial the others again."""
        for dialler in self.containers[name].mesh.diallers:
            dialler.start()

    def address(self, name: str) -> str:
        """Where a container listens, as `HOST:PORT`."""
        return self.containers[name].endpoints[0].removeprefix("amqp://")

    async def client(self, name: str, vhost: str = "", *, is_new: bool = False) -> cogwork.Client:
        """Return a client of a container: the same one as before, unless a new one is wanted."""
        known = self.clients.get((name, vhost))
        if known is not None and not is_new:
            return known
        made = cogwork.connect(f"{self.containers[name].endpoints[0]}/{vhost}")
        client = await self.enter(made)
        self.clients.setdefault((name, vhost), client)
        return client

    async def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter a context for as long as the containers run."""
        return await self._stack.enter_async_context(manager)

    async def settle(self) -> None:
        """Wait until everybody knows what everybody else wants."""
        await eventually(self.is_settled, "all containers know the same")

    def is_settled(self) -> bool:
        """Return whether everybody knows what everybody else wants."""
        meshes = {name: each.mesh.mesh for name, each in self.containers.items()}
        for here, one in meshes.items():
            if one.interests.local.throttle.due_s != math.inf:
                return False
            for name, other in meshes.items():
                if one is other:
                    continue
                known = one.interests.table.origins.get(name)
                told = other.interests.own_table
                if told is None or not self._is_linked(here, one.next_hop(name)):
                    return False
                if (0 if known is None else known.digest) != told.digest:
                    return False
        return True

    def _is_linked(self, name: str, neighbour: str | None) -> bool:
        """Return whether a link is in use now: a next hop is known for some time after it."""
        peer_links = self.containers[name].mesh.peer_links
        return any(peer_link.peer == neighbour and peer_link.was_up for peer_link in peer_links)

    def data_frames(self, one: str, other: str) -> int:
        """Count what has gone from a container to its neighbour but for the protocol."""
        return sum(
            peer_link.data.connection.wire.frames_out
            for peer_link in self.containers[one].mesh.peer_links
            if peer_link.peer == other
        )


@asynccontextmanager
async def linked(*edges: str, configuration: str = "") -> AsyncIterator[Linked]:
    """Run linked containers in this event loop; they know each other when it begins.

    Args:
        edges: As `a-b`; the first names the containers in the order of their start.
        configuration: What every container's says besides id, listener and links.
    """
    async with AsyncExitStack() as stack:
        made = Linked(stack, configuration)
        names = dict.fromkeys(name for edge in edges for name in edge.split("-"))
        for name in names:
            others = [other for other in made.containers if is_edge(name, other, edges)]
            await made.start(name, others)
        await made.settle()
        yield made


def is_edge(one: str, other: str, edges: Iterable[str]) -> bool:
    """Return whether two are to be linked."""
    return f"{one}-{other}" in edges or f"{other}-{one}" in edges

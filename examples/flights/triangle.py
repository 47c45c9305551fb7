"""Three containers, each in a process of its own, linked as a triangle; one of them is killed.

From a to c the way through b costs 2, the direct link 10. So what a and c have for each other goes
through b for as long as it lives. All three have a data directory and vote: each holds a replica of
what is replicated.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from waits import at_most

import cogwork
from cogwork.client import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from cogwork import Client

__all__ = ("DIRECT_COST", "LOGS", "Strike", "Triangle")

LOGS = Path("build/demo/logs")
"""Keeps the containers' logs after the demo."""

DIRECT_COST = 10
VOTERS = '[cluster]\nprimaries = ["a", "b", "c"]\n'
TOLD = '[telemetry]\nevery_s = 1.0\n[[audit]]\nqueue = "work/replicated"\n'
"""What the containers tell of themselves, and of a queue's items."""

SERVE = (sys.executable, "-m", "cogwork.cli.main", "serve", "--json", "--config")

ROUTES = "the routes between a and c to go through b, beside the direct link"

LINK, MESH = "org.cogwork.link", "org.cogwork.mesh"

STOP_S = 20
POLL_S = 0.005


@dataclass(frozen=True)
class Strike:
    """How b was killed.

    Attributes:
        carried: Messages that it had carried between a and c.
        direct: Messages that had gone over the direct link by then.
    """

    carried: int
    direct: int


class Triangle:
    """The containers a, b and c.

    Attributes:
        clients: Connected to a and to c.
        folder: Where configurations and data are; gone at the end.
    """

    def __init__(self, folder: Path) -> None:
        """Start nothing yet.

        Args:
            folder: Takes the containers' configurations and data.
        """
        self.clients: dict[str, Client] = {}
        self._urls: dict[str, str] = {}
        self._ports: dict[str, int] = {}
        self._costs: dict[str, dict[str, int]] = {}
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._consoles: dict[str, Client] = {}

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[Self]:
        """Run the three for the length of an `async with` block."""
        with tempfile.TemporaryDirectory(prefix="cogwork-demo-") as folder:
            triangle = cls(Path(folder))
            try:
                triangle._start("c")
                triangle._start("a", c=DIRECT_COST)
                triangle._start("b", a=1, c=1)
                async with AsyncExitStack() as stack:
                    for place in ("a", "c"):
                        for clients in (triangle.clients, triangle._consoles):
                            clients[place] = await stack.enter_async_context(
                                triangle.connect(place)
                            )
                    await triangle._until(triangle._leads_through_b, ROUTES)
                    yield triangle
            finally:
                triangle._stop()
                triangle._keep_logs()

    def connect(self, place: str) -> Client:
        """Make a client of a container, which stays there; use it in `async with`."""
        return cogwork.connect(self._urls[place], force=True)

    def roam(self, first: str) -> Client:
        """Make a client that goes to another container when its own is lost."""
        places = [first, *(place for place in self._urls if place != first)]
        return cogwork.connect([self._urls[place] for place in places], force=True)

    def url_of_a_survivor(self, killed: str) -> str:
        """Return the URL of a container other than the one that was killed."""
        return next(url for name, url in self._urls.items() if name != killed)

    # -- who leads

    async def leader_of(
        self, stream: str, *, other_than: str = "", as_seen: Client | None = None
    ) -> str:
        """Wait until a container knows who leads a replicated stream, and return that one.

        Args:
            stream: The stream's address.
            other_than: The leader that is dead.
            as_seen: A client of the container that is asked; without, it is a, or c.
        """
        alive = next(self._consoles[name] for name in ("a", "c") if name != other_than)
        console = as_seen or alive
        async with at_most(f"a leader of {stream}{_other_than(other_than)}"):
            while True:
                with suppress(NotFound):
                    reply = await console.manage("READ", {"type": "stream", "name": stream})
                    leader = reply.body["leader"]
                    if leader and leader != other_than:
                        return str(leader)
                await asyncio.sleep(POLL_S)

    async def owner_of(self, queue: str, *, other_than: str = "") -> str:
        """Wait until a container knows who owns a replicated queue, and return that one.

        Args:
            queue: The queue's address.
            other_than: The owner that is dead.
        """
        console = next(self._consoles[name] for name in ("a", "c") if name != other_than)
        async with at_most(f"an owner of {queue}{_other_than(other_than)}"):
            while True:
                with suppress(NotFound):
                    reply = await console.manage("READ", {"type": "queue", "name": queue})
                    owner = reply.body["owner"]
                    if owner and owner != other_than:
                        return str(owner)
                await asyncio.sleep(POLL_S)

    async def depth_of(self, queue: str, owner: str) -> int:
        """Ask the owner of a queue how many items it has."""
        async with self.connect(owner) as console:
            reply = await console.manage("READ", {"type": "queue", "name": queue})
        return int(reply.body["depth"])

    # -- what happens to containers

    def kill(self, name: str) -> None:
        """Kill a container by SIGKILL."""
        self._processes[name].kill()
        self._processes[name].wait()

    async def bring_back(self, name: str) -> None:
        """Start a container again, where it was and with what it had on disk."""
        await asyncio.to_thread(self._start, name, **self._costs[name])

    # -- what happens to b

    async def kill_b(self, is_time: Callable[[], bool]) -> Strike:
        """Kill b by SIGKILL while it carries messages: they have just become more.

        Args:
            is_time: Tells whether the middle is reached.

        Raises:
            WaitError: It carries none.
        """
        while not is_time():
            await asyncio.sleep(POLL_S)
        seen = await self.messages_over("b")
        async with at_most("messages between a and c that go through b"):
            while (carried := await self.messages_over("b")) == seen:
                await asyncio.sleep(POLL_S)
        strike = Strike(carried, await self.messages_over("c"))
        self.kill("b")
        return strike

    async def bring_back_b(self) -> None:
        """Start b again, and has traffic go through it.

        What goes well stays on its way, so the direct link is taken away for a moment.
        """
        await self.bring_back("b")
        await self._until(self._leads_through_b, ROUTES)
        await self._manage_direct_link("DELETE")
        await self._until(self._is_direct_link_gone, "the direct link between a and c to close")
        await self._manage_direct_link("CREATE", cost=DIRECT_COST)
        await self._until(self._leads_through_b, ROUTES)

    async def messages_over(self, neighbour: str) -> int:
        """Ask a how many messages have gone over its link to a neighbour, both ways together."""
        reply = await self._consoles["a"].manage("QUERY", {"type": LINK})
        names = reply.body["attributeNames"]
        links = [dict(zip(names, values, strict=True)) for values in reply.body["results"]]
        return sum(
            link["messages_in"] + link["messages_out"]
            for link in links
            if link["neighbour"] == neighbour
        )

    # -- the ways

    async def _leads_through_b(self) -> bool:
        """Return whether a and c are linked, and know of the cheaper way through b."""
        return await self._next_hops() == ("b", "b") and await self._is_direct_link_up()

    async def _is_direct_link_up(self) -> bool:
        return "c" in await self._neighbours_of_a()

    async def _is_direct_link_gone(self) -> bool:
        return await self._next_hops() == ("b", "b") and not await self._is_direct_link_up()

    async def _neighbours_of_a(self) -> dict[str, int]:
        return dict((await self._containers_seen_by("a"))["a"]["neighbours"])

    async def _next_hops(self) -> tuple[str | None, str | None]:
        """Return the next hop from a to c, and from c to a."""
        from_a, from_c = await self._containers_seen_by("a"), await self._containers_seen_by("c")
        return from_a.get("c", {}).get("next_hop"), from_c.get("a", {}).get("next_hop")

    async def _containers_seen_by(self, name: str) -> dict[str, dict[str, Any]]:
        reply = await self._consoles[name].manage("READ", {"type": MESH})
        return {container["id"]: container for container in reply.body["containers"]}

    async def _manage_direct_link(self, operation: str, **properties: object) -> None:
        """Have a make or drop its link to c."""
        link = {"type": LINK, "name": self._urls["c"], **properties}
        await self._consoles["a"].manage(operation, link)

    async def _until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        async with at_most(what):
            while not await holds():
                await asyncio.sleep(POLL_S)

    # -- processes

    def _start(self, name: str, **costs: int) -> None:
        """Start a container, linked with others at these costs."""
        self._costs[name] = costs
        file = self.folder / f"{name}.toml"
        links = "".join(
            f'[[link]]\nurl = "{self._urls[other]}"\ncost = {cost}\n'
            for other, cost in costs.items()
        )
        file.write_text(
            f'id = "{name}"\ndata_dir = "{self.folder / name}"\n{VOTERS}'
            f"[[listen]]\nport = {self._ports.get(name, 0)}\n{TOLD}{links}"
        )
        log = self.folder / f"{name}.log"
        with log.open("a") as output:
            process = subprocess.Popen(
                [*SERVE, str(file)], stdout=subprocess.PIPE, stderr=output, text=True
            )
        self._processes[name] = process
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"container {name} did not start:\n{log.read_text()}")
        self._urls[name] = url = str(json.loads(line)["endpoints"][0])
        self._ports[name] = int(url.rpartition(":")[2])

    def _stop(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _keep_logs(self) -> None:
        """Copy the containers' logs to where they outlive the demo."""
        LOGS.mkdir(parents=True, exist_ok=True)
        for log in self.folder.glob("*.log"):
            shutil.copy(log, LOGS)


def _other_than(name: str) -> str:
    return f" other than {name}" if name else ""

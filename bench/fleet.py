"""Linked containers to be measured, in processes of their own, started fresh for each case."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from server import ServerError

from cogwork.bench.measure import Broker
from cogwork.bench.servers.process import free_ports
from cogwork.bench.usage import ProcessUsage
from cogwork.cli.management.manager import Manager
from cogwork.client import ClientError, Retry, connect

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

__all__ = ("Edge", "Fleet", "Member")

_START_S: Final = 20.0
_STOP_S: Final = 10.0
_POLL_S: Final = 0.05

Edge = tuple[str, str, int]
"""Two linked containers, and what the link costs; the second one dials."""


@dataclass(eq=False)
class Member:
    """One container.

    Attributes:
        id: Its id.
        port: Where it listens.
        configuration: Its `cogwork.toml`.
    """

    id: str
    port: int
    configuration: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"amqp://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self.process is not None
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it, or start it again."""
        command = (Path(sys.executable).parent / "cogwork", "serve", "--config", self.configuration)
        with self.configuration.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def signal(self, number: int) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: int) -> None:
        """End it by a signal."""
        assert self.process is not None
        if not self.is_alive:
            return
        self.process.send_signal(number)
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, operation: str, kind: str) -> Any:  # noqa: ANN401  # whatever it answers
        """Ask its management.

        Raises:
            ClientError: It does not answer.
        """

        async def work() -> Any:  # noqa: ANN401  # as above
            async with connect(self.url, retry=Retry(give_up_after_s=0.0), force=True) as client:
                manager = Manager(client)
                if operation == "QUERY":
                    return (await manager.rows(kind))[0]
                return await manager.get(operation, kind)

        return asyncio.run(work())

    def next_hops(self) -> dict[str, str | None]:
        """Return the ways that it knows, by container; empty where it does not answer yet."""
        try:
            known = self.ask("READ", "org.cogwork.mesh")
        except (ClientError, OSError):
            return {}
        return {each["id"]: each["next_hop"] for each in known["containers"]}


class Fleet:
    """Linked containers; leaving the context ends them."""

    def __init__(self, edges: Sequence[Edge], configuration: str = "") -> None:
        """Prepare them.

        Args:
            edges: The links.
            configuration: What each `cogwork.toml` says besides.
        """
        self._directory = tempfile.TemporaryDirectory()
        ids = sorted({name for one, other, _ in edges for name in (one, other)})
        root = Path(self._directory.name)
        ports = dict(zip(ids, free_ports(len(ids)), strict=True))
        self.members = {name: Member(name, ports[name], root / f"{name}.toml") for name in ids}
        for name, member in self.members.items():
            links = "".join(
                f'[[link]]\nurl = "127.0.0.1:{ports[one]}"\ncost = {cost}\n'
                for one, other, cost in edges
                if other == name
            )
            listen = f'id = "{name}"\n[[listen]]\nport = {member.port}\n'
            member.configuration.write_text(listen + links + configuration)

    def __enter__(self) -> Self:
        for member in self.members.values():
            member.start()
        self.wait_until_linked()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for member in self.members.values():
            member.end(signal.SIGTERM)
        self._directory.cleanup()

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    @property
    def usage(self) -> ProcessUsage:
        """The counters of all of them, added up."""
        return ProcessUsage(*(member.pid for member in self.members.values()))

    def route(self, ingress: str, egress: str) -> Broker:
        """The way from senders at one to receivers at another."""
        return Broker(self[egress].url, self.usage, self[ingress].url)

    def wait_until_linked(self) -> None:
        """Wait until each knows a way to every other one.

        Raises:
            ServerError: It does not come to that.
        """
        deadline_s = time.monotonic() + _START_S
        while not all(self._knows_all(member) for member in self.members.values()):
            if time.monotonic() > deadline_s:
                raise ServerError("the containers do not find each other")
            time.sleep(_POLL_S)

    def _knows_all(self, member: Member) -> bool:
        hops = member.next_hops()
        return all(hops.get(name) for name in self.members if name != member.id)

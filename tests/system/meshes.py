"""Several containers in processes of their own, linked, that can be killed, stopped and started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from forked import forked

from cogwork.bench.servers.process import free_ports
from cogwork.cluster.levels import HIGHEST_LEVEL

from .served import COGWORK, READY_TIMEOUT_S, Served, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

HEARTBEAT_S = 0.3

Lay = Callable[[str, str, int], int]
"""From who dials, whom, and at which port, to the port that it dials."""


@dataclass(eq=False)
class Member:
    """One container.

    Attributes:
        id: Its id.
        port: Where it listens.
        links: The ports that it dials.
        folder: Takes its configuration and logs.
        configuration: What `cogwork.toml` says besides listener and links.
        head: What it says before all tables.
        was_killed: Whether its present life was ended by SIGKILL.
        wrapper: The command that runs its command, if any.
        environment: Variables that its process has besides those of this one.
    """

    id: str
    port: int
    links: list[int]
    folder: Path
    configuration: str = ""
    head: str = ""
    wrapper: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    lives: int = 0
    was_killed: bool = False

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"amqp://127.0.0.1:{self.port}"

    @property
    def served(self) -> Served:
        """The same as the helpers for single containers know it."""
        assert self.process is not None
        return Served(self.url, self.process)

    def configure(self) -> Path:
        """Write its configuration down; return where."""
        links = "".join(f'[[link]]\nurl = "127.0.0.1:{port}"\n' for port in self.links)
        file = self.folder / f"{self.id}.toml"
        file.write_text(
            f'id = "{self.id}"\n{self.head}[[listen]]\nport = {self.port}\n{links}\n'
            f"[mesh]\nheartbeat_s = {HEARTBEAT_S}\n{self.configuration}"
        )
        return file

    def start(self) -> None:
        """Start it, or start it again."""
        file = self.configure()
        self.lives += 1
        self.was_killed = False
        with (self.folder / f"{self.id}.{self.lives}.log").open("wb") as output:
            words = ("serve", "--config", str(file))
            env = {**os.environ, **self.environment}
            if self.wrapper:
                command = [*self.wrapper, *COGWORK, *words]
                self.process = subprocess.Popen(command, stdout=output, stderr=output, env=env)
            else:
                self.process = forked(*words, stdout=output, stderr=output, env=env)

    def signal(self, number: int) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def log(self) -> str:
        """Return the end of what it has said in its present life."""
        return (self.folder / f"{self.id}.{self.lives}.log").read_text()[-3000:]

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self.process is not None
        self.was_killed = True
        self.process.kill()
        self.process.wait()

    def reached(self) -> set[str]:
        """Return the containers to which it knows a way, itself among them."""
        found = json.loads(self.served.run("mesh", self.url, "--json"))
        return {row["id"] for row in found["containers"] if row["cost"] is not None}

    def reaches(self, ids: Set[str]) -> bool:
        """Return whether it knows a way to each of these."""
        return self.reached() >= ids

    def has_levels(self) -> bool:
        """Return whether its cluster has all that this version can do."""
        found = json.loads(self.served.run("status", self.url, "--json"))["container"]["cluster"]
        return bool(found["level"] == HIGHEST_LEVEL)

    def listens(self) -> bool:
        """Return whether it takes connections."""
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        return False


@contextlib.contextmanager
def meshed(
    folder: Path,
    ids: Iterable[str],
    edges: Iterable[Sequence[str]],
    configuration: str = "",
    *,
    head: Callable[[str], str] = lambda _name: "",
    lay: Lay | None = None,
    dress: Callable[[Member], object] = lambda _member: None,
) -> Iterator[dict[str, Member]]:
    """Run linked containers for the length of a `with` block; both ends of an edge dial.

    Args:
        folder: Takes configurations and logs.
        ids: Of the containers.
        edges: Which of them are linked.
        configuration: What each `cogwork.toml` says besides listener and links.
        head: What each one's says before all tables.
        lay: Says what a container dials in the place of another one's port; None: that itself.
        dress: Called with each before it is started.
    """
    names = list(ids)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    links: dict[str, list[int]] = {name: [] for name in names}
    for one, other in edges:
        for near, far in ((one, other), (other, one)):
            links[near].append(ports[far] if lay is None else lay(near, far, ports[far]))
    members = {
        name: Member(name, ports[name], links[name], folder, configuration, head(name))
        for name in names
    }
    try:
        for member in members.values():
            dress(member)
            member.start()
        for member in members.values():
            within(READY_TIMEOUT_S, member.listens, f"{member.id} listens")
        yield members
        alive = [member for member in members.values() if not member.was_killed]
        for member in alive:
            member.signal(signal.SIGTERM)
        for member in alive:
            assert member.process is not None
            code = member.process.wait(15)
            assert code == 0, f"{member.id} ended with {code}: {member.log()}"
    finally:
        for member in members.values():
            if member.process is not None and member.process.poll() is None:
                member.signal(signal.SIGCONT)
                member.kill()


def linked(members: Iterable[Member]) -> None:
    """Wait until all containers know ways to all others, and twins of links have gone."""
    found = list(members)
    ids = {member.id for member in found}
    for member in found:
        within(READY_TIMEOUT_S, member.listens, f"{member.id} listens")
    for member in found:
        within(READY_TIMEOUT_S, partial(member.reaches, ids), f"{member.id} is linked")
    time.sleep(2 * HEARTBEAT_S)

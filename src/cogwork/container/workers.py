"""The workers of a container: processes, each a container of its own, that look like one.

Theory of operation. Worker 3 of `north` is the container `north.3`. All of them listen on the same
ports, and each on a Unix-domain socket of its own, over which it is linked with every other. What a
worker's configuration says follows from that of the whole and its number: so it reads the same file
as the others, at the start and again.
"""

# Annotations are read at run time here, to check what a worker is told by them.

from __future__ import annotations

import socket
from pathlib import Path

from msgspec import Struct, structs

from cogwork.amqp.types import Symbol
from cogwork.config.settings import Configuration, Link, Listen

__all__ = ("OFFERED", "LinkSocket", "Worker", "siblings", "worker_id")

OFFERED = Symbol("cogwork:workers")
"""The capability of a container with workers; the property of that name says how many there are."""


class LinkSocket(Struct, frozen=True):
    """Where other workers connect, and nobody else: the directory is private.

    Attributes:
        path: Of the socket.
        scheme: As listeners call theirs.
    """

    path: str
    scheme: str = "unix"

    @property
    def is_plain(self) -> bool:
        """Whether sockets carry AMQP as it is."""
        return True

    @property
    def is_for_links(self) -> bool:
        """Whether other containers connect here and nobody else."""
        return True

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return True

    @property
    def endpoint(self) -> str:
        """The path."""
        return self.path


class _WorkerLink(Link, frozen=True, kw_only=True):
    """A link to another worker of the same container."""

    @property
    def is_to_worker(self) -> bool:
        """Always."""
        return True


class Worker(Struct, frozen=True):
    """Which of the workers one is; what its supervisor tells it.

    Attributes:
        number: From 0 on.
        count: How many there are.
        directory: Of their sockets.
        ports: Those of the configured listeners, in their order; 0 for one at a path.
        held: The sockets at paths, which all of them accept from, as file descriptors.
    """

    number: int
    count: int
    directory: str
    ports: list[int]
    held: dict[str, int] = {}

    @property
    def socket(self) -> LinkSocket:
        """Where the others connect."""
        return LinkSocket(self._path(self.number))

    def _path(self, number: int) -> str:
        return f"{self.directory}/{number}"

    def configured(self, whole: Configuration) -> Configuration:
        """Return the configuration of this worker.

        Args:
            whole: What the file and the options say; links to other containers, and gateways, are
                worker 0's.
        """
        cost = whole.mesh.worker_cost
        others = [number for number in range(self.count) if number != self.number]
        links: list[Link] = [
            _WorkerLink(url=f"unix://{self._path(number)}", cost=cost) for number in others
        ]
        data_dir = None
        if whole.data_dir is not None:
            data_dir = str(Path(whole.data_dir) / f"worker-{self.number}")
        return structs.replace(
            whole,
            id=worker_id(whole, self.number),
            data_dir=data_dir,
            listeners=[self._on_port(at, listen) for at, listen in enumerate(whole.listeners)],
            links=[*links, *(whole.links if self.number == 0 else ())],
            gateways=whole.gateways if self.number == 0 else {},
        )

    def _on_port(self, at: int, listen: Listen) -> Listen:
        """Return a listener that is on the same port in all workers, whichever it was to be."""
        if listen.port != 0 or at >= len(self.ports):
            return listen
        return structs.replace(listen, port=self.ports[at])


def worker_id(whole: Configuration, number: int) -> str:
    """Return the container id of a worker.

    Args:
        whole: The configuration of all.
        number: Of the worker.
    """
    return f"{whole.id or socket.gethostname()}.{number}"


def siblings(container: str, count: int) -> list[str]:
    """List the container ids of all workers, by that of one of them.

    Args:
        container: The id of one.
        count: How many there are.
    """
    name = container.rpartition(".")[0]
    return [f"{name}.{number}" for number in range(count)]

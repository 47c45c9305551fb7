"""NATS with JetStream: one server, or a cluster of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.servers.process import Server, program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("NatsServer",)


class NatsServer(Server):
    """One server, which keeps its streams in files.

    Args:
        directory: Where it keeps what it keeps.

    Attributes:
        members: Those of its cluster, itself among them.
    """

    port_count = 3

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.members: Sequence[NatsServer] = (self,)

    @classmethod
    def cluster(cls, directory: Path, count: int) -> list[NatsServer]:
        """Makes the servers of a cluster."""
        members = [cls(directory / str(index)) for index in range(count)]
        for each in members:
            each.members = members
        return members

    @property
    def name(self) -> str:
        """What its cluster calls it."""
        return f"n{self.port}"

    def command(self) -> list[str]:
        """Returns what starts it."""
        routes = ",".join(f"nats://127.0.0.1:{each.more_ports[0]}" for each in self.members)
        clustered = (
            *("--name", self.name, "--cluster_name", "c", "--routes", routes),
            *("--cluster", f"nats://127.0.0.1:{self.more_ports[0]}"),
        )
        return [
            program("nats-server", "nats-server"),
            *("--addr", "127.0.0.1", "--port", str(self.port)),
            *("--http_port", str(self.more_ports[1])),
            *("--jetstream", "--store_dir", str(self.directory / "data")),
            *(clustered if len(self.members) > 1 else ()),
        ]

    def is_ready(self) -> bool:
        """Tells whether it answers, and its streams are there."""
        request = b"GET /healthz HTTP/1.0\r\n\r\n"
        return self.answers(request, b'"ok"', self.more_ports[1])

    @property
    def options(self) -> dict[str, object]:
        """The engine's options that lead to it."""
        return {"url": ",".join(each.url for each in self.members)}

    @property
    def url(self) -> str:
        """Where it is."""
        return f"nats://127.0.0.1:{self.port}"

"""etcd: one member, or a cluster of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.servers.process import Server, program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("EtcdServer",)


class EtcdServer(Server):
    """One member.

    Args:
        directory: Where it keeps what it keeps.

    Attributes:
        members: Those of its cluster, itself among them.
    """

    port_count = 2

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.members: Sequence[EtcdServer] = (self,)

    @classmethod
    def cluster(cls, directory: Path, count: int) -> list[EtcdServer]:
        """Makes the members of a cluster."""
        members = [cls(directory / str(index)) for index in range(count)]
        for each in members:
            each.members = members
        return members

    @property
    def name(self) -> str:
        """What its cluster calls it."""
        return f"m{self.port}"

    @property
    def peer_url(self) -> str:
        """Where the others find it."""
        return f"http://127.0.0.1:{self.more_ports[0]}"

    def command(self) -> list[str]:
        """Returns what starts it."""
        members = ",".join(f"{each.name}={each.peer_url}" for each in self.members)
        return [
            program("etcd", "etcd-server"),
            *("--name", self.name, "--data-dir", str(self.directory / "data")),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", self.peer_url),
            *("--initial-advertise-peer-urls", self.peer_url),
            *("--initial-cluster", members, "--logger", "zap", "--log-level", "error"),
        ]

    def is_ready(self) -> bool:
        """Tells whether it answers."""
        return self.answers(b"GET /health HTTP/1.0\r\n\r\n", b'"health":"true"')

    @property
    def options(self) -> dict[str, object]:
        """The engine's options that lead to it."""
        return {"url": ",".join(each.url for each in self.members)}

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

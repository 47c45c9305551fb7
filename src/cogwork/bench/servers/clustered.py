"""A server that may be one of a cluster, each member of which knows the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from cogwork.bench.servers.process import Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("ClusteredServer",)


class ClusteredServer(Server):
    """One server, alone or with others.

    Args:
        directory: Where it keeps what it keeps.

    Attributes:
        members: Those of its cluster, itself among them.
    """

    def __init__(self: Self, directory: Path) -> None:
        super().__init__(directory)
        self.members: Sequence[Self] = (self,)

    @classmethod
    def cluster(cls, directory: Path, count: int) -> list[Self]:
        """Make the members of a cluster."""
        members = [cls(directory / str(index)) for index in range(count)]
        for each in members:
            each.members = members
        return members

    @property
    def name(self) -> str:
        """What its cluster calls it."""
        return f"m{self.port}"

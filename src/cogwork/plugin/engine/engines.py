"""What a node may have of the engines that keep streams (`cogwork.plugin.engine`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.plugin.engine.contract import Engine
    from cogwork.plugin.engine.placement import Placement

__all__ = ("Engines",)


class Engines(Protocol):
    """The engines of one virtual host."""

    @property
    def kinds(self) -> Sequence[str]:
        """The names of those that are installed."""

    async def open(
        self,
        kind: str,
        stream: str,
        options: Mapping[str, object],
        capture: Sequence[str] = (),
        *,
        is_shared: bool = False,
    ) -> Engine:
        """Open a stream; make it where it is new.

        Args:
            kind: Which engine.
            stream: Its name, unique in the virtual host.
            options: The declaration's, by name.
            capture: Topics whose messages it keeps, too: for containers that learn of it by this.
            is_shared: Whether every container of the cluster is to have it.

        Raises:
            Unavailable: The engine cannot be reached now.
            ValueError: There is no such engine, or an option is wrong.
        """

    def is_clustered(self, kind: str) -> bool:
        """Return whether an engine declares its streams for all containers of a cluster itself."""

    def placement(self, kind: str, stream: str) -> Placement | None:
        """Return who is to hold a stream; None where the engine's streams stay where they are."""

    async def move(
        self, kind: str, stream: str, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Declare that others are to hold a stream; return before they do.

        Args:
            kind: Which engine.
            stream: Its name.
            voters: Who is to hold it, in order of leader priority.
            learners: Who is to have a copy that counts for nothing.

        Raises:
            Unavailable: It cannot be declared now, or a container cannot be asked.
            Unsupported: The engine's streams stay where they are.
            ValueError: There is no such stream, or these cannot hold it.
        """

    async def delete(self, kind: str, stream: str, *, is_shared: bool = False) -> None:
        """Give up a stream with all its records.

        Args:
            kind: Which engine.
            stream: Its name.
            is_shared: Whether every container of the cluster has it.

        Raises:
            Unavailable: The engine cannot be reached now.
        """

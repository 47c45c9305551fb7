"""What a node may have of the engines that keep streams (`cogwork.consensus`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.consensus.engine import Engine

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
        """Opens a stream; makes it where it is new.

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

    async def delete(self, kind: str, stream: str, *, is_shared: bool = False) -> None:
        """Gives up a stream with all its records.

        Args:
            kind: Which engine.
            stream: Its name.
            is_shared: Whether every container of the cluster has it.

        Raises:
            Unavailable: The engine cannot be reached now.
        """

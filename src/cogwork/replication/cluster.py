"""What the engine `raft` has of the cluster that says who holds which stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cogwork.plugin.engine.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("NoCluster", "StreamCluster")


class StreamCluster(Protocol):
    """The cluster."""

    @property
    def voters(self) -> Sequence[str]:
        """Who holds `$cluster`: by these containers know whether they are in the same one."""

    async def change_members(
        self, group: int, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Have others hold a stream; return when they do.

        Raises:
            ConsensusError: That is not to be had, or not now.
            ValueError: These cannot hold it.
        """

    def moved(self, group: int, move: int, floor: tuple[int, int]) -> None:
        """Take note that a stream whose leader is here has the members that it is to have.

        It is told so again and again, until the stream's placement says it.

        Args:
            group: The stream's.
            move: The number of the move that is done.
            floor: Term and index of an entry that is committed.
        """


class NoCluster:
    """Where every stream stays where it is."""

    def __init__(self, own: str) -> None:
        """Is one container.

        Args:
            own: Its id.
        """
        self.voters = (own,)

    async def change_members(
        self, group: int, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Is not to be had.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(f"have {[*voters, *learners]} hold group {group}")

    def moved(self, group: int, move: int, floor: tuple[int, int]) -> None:
        """Take note of nothing."""

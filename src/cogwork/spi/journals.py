"""What a node may have of the disk that keeps a queue's items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.dataplane.store import Store

__all__ = ("JournalHandle", "Journals")


class JournalHandle(Protocol):
    """One queue's journal."""

    def delete(self) -> None:
        """Gives up all that it holds, for good."""


class Journals(Protocol):
    """The journals of one virtual host's queues."""

    @property
    def shard(self) -> int:
        """The number of this container's parts of queues, the same in all its lives."""

    def open(self, address: str, options: Mapping[str, object], store: Store) -> JournalHandle:
        """Has a queue's changes written down; its store gets back what was written before.

        Args:
            address: The queue's.
            options: By which it is declared again after a restart.
            store: Empty.

        Raises:
            Refused: Nothing can be written.
        """

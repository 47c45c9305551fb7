"""What a node may have of the disk that keeps a queue's items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cogwork.dataplane.addresses.partitions import PartitionedInlet
    from cogwork.dataplane.queue.store import Store

__all__ = ("JournalHandle", "Journals", "ReplicaHandle")


class JournalHandle(Protocol):
    """One queue's journal.

    Attributes:
        problem: Why the queue does not work; None while nothing is wrong.
    """

    problem: str | None

    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made once all that has happened so far is durable, here and elsewhere.

        Args:
            call: Is told whether it is: it is not, and never will be, where another container owns
                a queue that something of it was written to.
        """

    def delete(self) -> None:
        """Give up all that it holds, for good."""


class ReplicaHandle(JournalHandle, Protocol):
    """This container's part in one queue that has an owner: it is replicated, or has a home.

    Attributes:
        epoch: In which this container owns the queue; None while it does not.
        home: The container that owns it for good; None where it is replicated.
    """

    epoch: int | None
    home: str | None

    @property
    def owner(self) -> str | None:
        """The container that owns the queue, as far as it is known here."""

    def held(self) -> Mapping[str, object]:
        """Return who holds it, and who is to, in plain values: as a stream's row does."""

    async def relocate(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Declare that others are to hold it; return before they do.

        Args:
            voters: Who is to hold it, in order of leader priority.
            learners: Who is to have a copy that counts for nothing.

        Raises:
            Unavailable: It cannot be declared now, or a container cannot be asked.
            ValueError: These cannot hold it.
        """

    def wake(self) -> None:
        """Have it looked at soon: other containers say something new of who owns it."""

    def close(self) -> None:
        """Let the queue go; it stays with the other replicas."""


class Journals(Protocol):
    """The journals of one virtual host's queues."""

    @property
    def has_disk(self) -> bool:
        """Whether there is a data directory to keep queues in."""

    def note_in_memory(self, address: str) -> None:
        """Take note that a queue keeps a durable message in memory, for want of a disk."""

    @property
    def shard(self) -> int:
        """The number of this container's parts of queues, the same in all its lives."""

    def open(self, address: str, options: Mapping[str, object], store: Store) -> JournalHandle:
        """Have a queue's changes written down; its store gets back what was written before.

        Args:
            address: The queue's.
            options: By which it is declared again after a restart.
            store: Empty.

        Raises:
            Refused: Nothing can be written.
        """

    def shard_of(self, address: str) -> int:
        """Return the number of an owned queue's items, the same at every container."""

    def replicate(
        self,
        address: str,
        options: Mapping[str, object],
        store: Store,
        inlet: PartitionedInlet,
    ) -> ReplicaHandle:
        """Have a queue's changes written down by several containers.

        Args:
            address: The queue's.
            options: By which it is declared for all containers.
            store: Empty; it gets the items while this container owns the queue.
            inlet: Leads to the owner.
        """

"""The journals of one virtual host's queues, as its nodes see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.cluster.queue_replicas import shard_of_queue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.container.cluster.queue_replicas import QueueReplicas
    from cogwork.container.cluster.replicated_queue import ReplicatedQueue
    from cogwork.container.journals.journals import QueueJournals
    from cogwork.container.journals.queue_journal import QueueJournal
    from cogwork.dataplane.addresses.partitions import PartitionedInlet
    from cogwork.dataplane.queue.store import Store

__all__ = ("VhostJournals",)


class VhostJournals:
    """The journals of one virtual host's queues, as its nodes see them."""

    def __init__(self, journals: QueueJournals, replicas: QueueReplicas, vhost: str) -> None:
        """Initialize it with the container's.

        Args:
            journals: The container's.
            replicas: Its replicated queues.
            vhost: The virtual host's name.
        """
        self._journals = journals
        self._replicas = replicas
        self._vhost = vhost

    @property
    def has_disk(self) -> bool:
        """Whether there is a data directory to keep queues in."""
        return self._journals.has_disk

    def note_in_memory(self, address: str) -> None:
        """Take note that a queue keeps a durable message in memory, for want of a disk."""
        self._journals.note_in_memory(address)

    @property
    def shard(self) -> int:
        """The number of this container's parts of queues, the same in all its lives."""
        return self._journals.shard

    def open(self, address: str, options: Mapping[str, object], store: Store) -> QueueJournal:
        """Have a queue's changes written down."""
        return self._journals.open(self._vhost, address, options, store)

    def shard_of(self, address: str) -> int:
        """Return the number of a replicated queue's items, the same wherever it is owned."""
        return shard_of_queue(self._vhost, address)

    def replicate(
        self,
        address: str,
        options: Mapping[str, object],
        store: Store,
        inlet: PartitionedInlet,
    ) -> ReplicatedQueue:
        """Have a queue's changes written down by several containers."""
        return self._replicas.open(self._vhost, address, options, store, inlet)

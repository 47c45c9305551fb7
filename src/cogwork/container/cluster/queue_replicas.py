"""The replicated queues of this container, and what they need of it.

Theory of operation. A queue is visited where something about it has changed or goes by the time:
whether a replica is here and leads, who owns it, what it has written, whether the disk takes
anything. Most have nothing of the kind, and are visited once a second only (`Rounds`).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast
from zlib import crc32

from msgspec import structs

from cogwork.amqp.errors import Condition
from cogwork.container.cluster.raft import open_declared, placement_of, stream_name
from cogwork.container.cluster.replicated_queue import ReplicatedQueue
from cogwork.container.cluster.rounds import Rounds
from cogwork.plugin.engine.errors import ConsensusError, Unavailable
from cogwork.plugin.node import Refused
from cogwork.plugin.queue_options import QueueOptions
from cogwork.plugin.shape import keys_at

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from cogwork.cluster.declarations import Declaration, Value
    from cogwork.container.cluster.cluster import Cluster
    from cogwork.container.cluster.moves import Moves
    from cogwork.container.journals.journals import QueueJournals
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.partitions import PartitionedInlet
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.queue.store import Store
    from cogwork.replication.engine import RaftEngine
    from cogwork.replication.service import RaftService

__all__ = ("KIND", "QueueReplicas", "shard_of_queue")

KIND = "queue"
DEFAULTS: Mapping[str, Value] = {
    each.name: each.default for each in structs.fields(QueueOptions) if each.default is not None
}
"""Of options that a queue's declaration may not have yet."""

TICK_S = 0.05
"""How often queues are visited that are awake."""

SLEEP_S = 0.5
"""Who has not been running for longer was stopped."""


def shard_of_queue(vhost: str, address: str) -> int:
    """Return the number that the tags of a replicated queue's items begin with, at every owner."""
    return crc32(f"queue {vhost} {address}".encode())


class QueueReplicas:
    """Owned by the container.

    Attributes:
        core: Whose output is held.
        journals: Have the turns.
        is_barred: Whether nothing can be owned here: the disk takes nothing.
    """

    def __init__(
        self,
        own: str,
        core: Core,
        journals: QueueJournals,
        vhosts: Mapping[str, VirtualHost],
        *,
        has_cluster: bool,
    ) -> None:
        """Start with none yet.

        Args:
            own: This container's id.
            core: Whose output is held.
            journals: Have the turns.
            vhosts: Where the queues are.
            has_cluster: Whether there is a cluster to declare queues in.
        """
        self._has_cluster = has_cluster
        self._own = own
        self.core = core
        self.journals = journals
        self.is_barred = False
        self._vhosts = vhosts
        self._queues: dict[tuple[str, str], ReplicatedQueue] = {}
        self._by_stream: dict[str, ReplicatedQueue] = {}
        self._rounds: Rounds[ReplicatedQueue] = Rounds()
        self._cluster: Cluster | None = None
        self._service: RaftService | None = None
        self._moves: Moves | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._now_s = 0.0
        self._ticked_s = time.monotonic()
        self._tasks: set[asyncio.Task[object]] = set()

    def now_s(self) -> float:
        """Return the time as this container lives it: what it slept through does not count."""
        return self._now_s

    def open(
        self,
        vhost: str,
        address: str,
        options: Mapping[str, object],
        store: Store,
        inlet: PartitionedInlet,
    ) -> ReplicatedQueue:
        """Have a queue's changes written to a stream; see `cogwork.plugin.journals.Journals`."""
        if not self._has_cluster:
            raise Refused(
                f"{address!r:.200} is to be replicated, and this container is in no cluster: give "
                "it [cluster] primaries and, where it is to hold replicas, a data_dir",
                Condition.NOT_IMPLEMENTED,
            )
        known = keys_at(QueueOptions, ())
        given = {key: value for key, value in options.items() if key in known and value is not None}
        queue = ReplicatedQueue(self, (vhost, address), given, store, inlet)
        self._queues[vhost, address] = queue
        self._by_stream[stream_name(KIND, vhost, address)] = queue
        self._rounds.add(queue)
        if self._timer is not None:
            queue.start()
        return queue

    def start(self, cluster: Cluster, service: RaftService, moves: Moves) -> None:
        """Begin to follow the queues that there are."""
        self._cluster, self._service, self._moves = cluster, service, moves
        service.on_replica_changed = self._replica_changed
        for queue in self._queues.values():
            queue.start()
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def close(self) -> None:
        """Let go of all queues."""
        if self._timer is not None:
            self._timer.cancel()
        for queue in list(self._queues.values()):
            queue.close()
        self._queues.clear()

    # -- what queues need

    async def open_stream(self, queue: ReplicatedQueue) -> RaftEngine:
        """Open the stream of a queue's records; declare it where it is new.

        Raises:
            Unavailable: The cluster has no majority.
            ValueError: The queue is declared with other options, or one is wrong.
        """
        assert self._cluster is not None
        assert self._service is not None
        name = (queue.vhost, queue.address)
        return await open_declared(
            self._cluster, self._service, KIND, name, queue.options, defaults=DEFAULTS
        )

    async def declare(self, vhost: str, address: str) -> None:
        """Declare a queue that is here, without waiting for its records.

        Raises:
            ConsensusError: It is not known whether it will be, or it cannot be now.
            ValueError: It is declared with other options.
        """
        assert self._cluster is not None
        queue = self._queues[vhost, address]
        options = cast("Mapping[str, Value]", queue.options)
        await self._cluster.declare(KIND, vhost, address, options, DEFAULTS)

    def held(self, queue: ReplicatedQueue, engine: RaftEngine | None) -> Mapping[str, object]:
        """Return who holds a queue's records, and who is to, as far as it is known here."""
        declaration = self._declaration(queue)
        placement = None
        if declaration is not None and self._cluster is not None:
            placement = placement_of(self._cluster, declaration)
        known = None
        if engine is not None:
            with suppress(ConsensusError):  # it may just have ended here
                known = engine.glance()
        is_settled = placement is not None and placement.is_settled
        members = known[1] if known is not None else placement if is_settled else None
        return {
            "voters": [] if members is None else list(members.voters),
            "learners": [] if members is None else list(members.learners),
            "wanted": [] if placement is None else list(placement.voters),
            "wanted_learners": [] if placement is None else list(placement.learners),
            "moving": placement is not None and not placement.is_settled,
        }

    async def relocate(
        self, queue: ReplicatedQueue, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        """Declare that others are to hold a queue's records; return before they do.

        Raises:
            Unavailable: It cannot be declared now, or a container cannot be asked.
            ValueError: These cannot hold it.
        """
        declaration = None
        if self._cluster is not None:
            declaration = await self._cluster.find(KIND, queue.vhost, queue.address)
        if declaration is None or self._moves is None:
            raise Unavailable(f"queue {queue.address!r:.200} is not declared yet")
        await self._moves.move(declaration, voters, learners)

    def _declaration(self, queue: ReplicatedQueue) -> Declaration | None:
        if self._cluster is None:
            return None
        return self._cluster.declarations.find(KIND, queue.vhost, queue.address)

    def has_replica(self, queue: ReplicatedQueue) -> bool:
        """Return whether a replica of the queue's records is here."""
        assert self._service is not None
        found = self._service.streams.get(stream_name(KIND, queue.vhost, queue.address))
        return found is not None and found.member is not None

    def release(self, engine: RaftEngine) -> None:
        """Let a stream go."""
        self._spawn(engine.close())

    async def withdraw(self, vhost: str, address: str) -> bool:
        """Have every container give up a queue, had here or not; tell whether there was one.

        It goes here as it goes everywhere: once the cluster has agreed on that.

        Raises:
            Unavailable: No majority of the cluster answers; the queue stays.
            ConsensusError: It is not known whether it does.
        """
        cluster, is_here = self._cluster, (vhost, address) in self._queues
        if cluster is None:
            return False
        if cluster.declarations.find(KIND, vhost, address) is None:
            if not is_here:
                return False
            await cluster.demand_majority()
            self._vhosts[vhost].remove_node(address)  # it would go on to declare itself
        return await cluster.delete(KIND, vhost, address) or is_here

    def forget(self, queue: ReplicatedQueue) -> None:
        """Take note that a queue is not here any more."""
        self._rounds.remove(queue)
        if self._queues.get((queue.vhost, queue.address)) is queue:
            del self._queues[queue.vhost, queue.address]
        stream = stream_name(KIND, queue.vhost, queue.address)
        if self._by_stream.get(stream) is queue:
            del self._by_stream[stream]

    def _spawn(self, work: Coroutine[object, object, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def changed(self, queue: ReplicatedQueue) -> None:
        """Have others know who owns a queue."""
        self.wake(queue)
        vhost = self._vhosts.get(queue.vhost)
        if vhost is not None and vhost.reach is not None:
            vhost.reach.owners.changed(queue.address)

    def cut_off(self, queue: ReplicatedQueue) -> None:
        """Cut off consumers that have items of a queue: they come back with them."""
        for link, is_far, has_items in queue.store.holders():
            if is_far:
                link.owner.detach(closed=False)
            elif has_items:
                link.owner.session.connection.lose()

    # -- time

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        at_s = time.monotonic()
        self._now_s += min(at_s - self._ticked_s, SLEEP_S)
        self._ticked_s = at_s
        for queue in self._rounds.due():
            if self._visit(queue, self._now_s):
                self.wake(queue)

    def wake(self, queue: ReplicatedQueue) -> None:
        """Have a queue visited at the next tick: something about it may have changed."""
        self._rounds.wake(queue)

    def _replica_changed(self, stream: str) -> None:
        queue = self._by_stream.get(stream)
        if queue is not None:
            self.wake(queue)

    def _visit(self, queue: ReplicatedQueue, now_s: float) -> bool:
        """Do what is due of a queue; tell whether the next tick is to look again."""
        queue.attend(now_s, has_replica=self.has_replica(queue))
        queue.tick(now_s)
        if queue.epoch is not None:
            self._look_for_newer(queue)
            return queue.goes_by_time
        if self.is_barred or not self._is_ours(queue):
            return False
        queue.claim()
        return True  # it may have to follow first, and a claim may come to nothing

    def _look_for_newer(self, queue: ReplicatedQueue) -> None:
        """Give up a queue that another container owns since a later epoch."""
        vhost = self._vhosts.get(queue.vhost)
        if queue.epoch is None or vhost is None or vhost.reach is None:
            return
        owner = vhost.reach.owners.owner_of(queue.address)
        if owner is not None and vhost.reach.owners.epoch_of(queue.address, owner) > queue.epoch:
            queue.disown(f"container {owner} owns it now")

    def owner_of(self, queue: ReplicatedQueue) -> str | None:
        """Return who owns a queue, as far as it is known here."""
        if queue.epoch is not None:
            return self._own
        vhost = self._vhosts.get(queue.vhost)
        if vhost is None or vhost.reach is None:
            return None
        return vhost.reach.owners.owner_of(queue.address)

    def _is_ours(self, queue: ReplicatedQueue) -> bool:
        """Return whether this container leads a queue's replicas, and can reach no owner."""
        assert self._service is not None
        name = stream_name(KIND, queue.vhost, queue.address)
        return self._service.leads(name) and self.owner_of(queue) is None

    def bar(self, why: str) -> None:
        """Give up what is owned here: the disk takes nothing."""
        self.is_barred = True
        for queue in list(self._queues.values()):
            queue.disown(why)

    def unbar(self) -> None:
        """Take queues over again where that is due."""
        self.is_barred = False
        self._rounds.wake_all()

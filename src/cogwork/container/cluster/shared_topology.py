"""This container's part in the exchanges, shared queues and bindings of its cluster.

Theory of operation. What the cluster has comes by as commands are applied, and is made here: an
exchange and a binding in the graph of its virtual host, a queue as a node, whose messages are at
its home. From time to time it is looked whether something has to be declared from here:

- what was this container's alone before the cluster could have it, or is configured here;
- that earlier incarnations have ended: of this container when it starts, and, by whoever leads, of
  one that has been gone for long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from cogwork.amqp.errors import CogworkError
from cogwork.amqp091.errors import ProtocolError
from cogwork.cluster.declarations import APPLY_LEVEL, Delete
from cogwork.cluster.topology import (
    TOPOLOGY_LEVEL,
    EndIncarnations,
    Owner,
    SharedBinding,
    SharedExchange,
    SharedQueue,
)
from cogwork.container.cluster.cluster import STREAM
from cogwork.container.cluster.raft import KIND as STREAM_KIND
from cogwork.container.vhost.shared import (
    INTERNAL_ERROR,
    VhostTopology,
    binding_of,
    exchange_of,
)
from cogwork.plugin.engine.errors import Unavailable
from cogwork.plugin.node import Refused
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from cogwork.cluster.declarations import Outcome
    from cogwork.cluster.topology import Change, Topology, TopologyCommand
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.cluster.cluster import Cluster
    from cogwork.container.cluster.queue_replicas import QueueReplicas
    from cogwork.container.cluster.visibility import Visibility
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.replication.service import RaftService

__all__ = ("SharedTopology",)

READY_TIMEOUT_S: Final = 4.0
"""So long who declares waits for a container that has just started."""

CATCH_UP_TIMEOUT_S: Final = 2.0
"""So long it is asked what was declared elsewhere before something is said not to be there."""

LOOK_S: Final = 1.0

GONE_S: Final = 600.0
"""A container that was away for so long has lost what was not durable."""

PRIMARIES_MIN: Final = 3
"""With so many, queues are replicated if nobody says more."""

log = logging.getLogger("cogwork")


class SharedTopology:
    """Owned by the container's replication."""

    def __init__(
        self,
        own: Owner,
        cluster: Cluster,
        service: RaftService,
        visibility: Visibility,
        *,
        replicas: QueueReplicas,
        vhosts: Mapping[str, VirtualHost],
        queues_of: Callable[[VirtualHost], BasicQueues],
        life_of: Callable[[str], int],
        linked: Callable[[], Mapping[str, object]],
    ) -> None:
        """Follow the cluster from now on.

        Args:
            own: This container, in its present incarnation.
            cluster: Has the topology.
            service: Tells who leads.
            visibility: Waits for other members.
            replicas: This container's replicated queues.
            vhosts: This container's virtual hosts.
            queues_of: Returns the queues of AMQP 0-9-1 of one.
            life_of: Tells when a container began its present life; 0 where it is not known.
            linked: The containers that there is a way to.
        """
        self._own = own
        self._cluster = cluster
        self._service = service
        self._visibility = visibility
        self._replicas = replicas
        self._vhosts = vhosts
        self._queues_of = queues_of
        self._life_of = life_of
        self._linked = linked
        self._seen_s: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        cluster.on_topology = self._follow

    def start(self) -> None:
        """Begin to look what is to be declared from here."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Declare nothing more."""
        tasks = [*self._tasks, *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._visibility.close()

    def of(self, vhost: VirtualHost) -> VhostTopology:
        """Return what the cluster has of a virtual host."""
        vhost.exchanges.on_unused = partial(self._delete_unused_later, vhost)
        return VhostTopology(vhost.name, vhost.exchanges, self)

    # -- as virtual hosts see it

    @property
    def state(self) -> Topology:
        """What is known here."""
        return self._cluster.declarations.topology

    @property
    def is_active(self) -> bool:
        """Whether exchanges are the cluster's: all members can do that, and it is known here."""
        return self._cluster.is_current and self._cluster.declarations.level >= TOPOLOGY_LEVEL

    @property
    def has_replicas(self) -> bool:
        """Whether there are so many primaries that queues are replicated if nobody says more."""
        return len(self._cluster.voters) >= PRIMARIES_MIN

    async def when_ready(self) -> None:
        """Wait until it is known what the cluster has.

        Raises:
            Unavailable: That takes too long.
        """
        if self._cluster.is_current:
            return
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                await self._cluster.when_current()
        except TimeoutError:
            text = "this container does not know yet what the cluster has declared"
            raise Unavailable(text) from None

    async def catch_up(self) -> str:
        """Apply all that is declared by now; return why that cannot be, or nothing."""
        try:
            async with asyncio.timeout(CATCH_UP_TIMEOUT_S):
                await self._cluster.when_current()
                await self._cluster.know_all()
        except (TimeoutError, CogworkError):
            return "no majority of the cluster answers: it may have been declared elsewhere"
        return ""

    async def change(self, command: TopologyCommand | Delete) -> Outcome:
        """Have a command carried out; return once it is so at all linked members.

        Raises:
            ConsensusError: It is not known whether it will be.
            ValueError: No command can say this.
        """
        outcome = await self._cluster.change_topology(command)
        if outcome.has_changed:
            await self._visibility.reach(self._cluster.next)
        return outcome

    async def declare_records(self, vhost: str, address: str) -> None:
        """Declare a replicated queue that is here.

        Raises:
            ConsensusError: It is not known whether it will be.
            ValueError: It is declared with other options.
        """
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                await self._replicas.declare(vhost, address)
        except TimeoutError:
            raise Unavailable("no majority of the cluster answers") from None

    async def delete_records(self, vhost: str, address: str) -> bool:
        """Delete a replicated queue.

        Raises:
            ConsensusError: It is not known whether it will be.
        """
        return (await self.change(Delete(QUEUE, vhost, address))).has_changed

    async def reach_members(self) -> None:
        """Wait until all linked members have applied what is declared now, but not for long."""
        await self._visibility.reach(self._cluster.next)

    def owner(self, home: str) -> Owner | None:
        """Return the present incarnation of a container; None where it is not known."""
        if home in {"", self._own.container}:
            return self._own
        life = self._life_of(home) if home in self._linked() else 0
        return Owner(home, life) if life else None

    def _delete_unused_later(self, vhost: VirtualHost, name: str, is_own: bool) -> None:
        """Delete an exchange that has lost its last binding, whose container does so or is gone."""
        if is_own or self._service.leads(STREAM):
            self._spawn(self._delete_unused(vhost, name, 0.0 if is_own else LOOK_S))

    async def _delete_unused(self, vhost: VirtualHost, name: str, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        if vhost.topology is not None:
            await vhost.topology.delete_unused(name)

    def _spawn(self, work: Coroutine[object, object, object]) -> None:
        task = asyncio.get_running_loop().create_task(_logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- following

    def _follow(self, changes: Sequence[Change]) -> None:
        for entry, is_there in changes:
            vhost = self._vhosts.get(entry.vhost)
            if vhost is None:
                continue
            try:
                if is_there:
                    self._make(vhost, entry)
                else:
                    self._remove(vhost, entry)
            except (CogworkError, ProtocolError, Refused, ValueError) as error:
                kind = entry.key[0]
                log.error("cannot follow the cluster's %s %r here: %s", kind, entry.key[2], error)
            except Exception:  # whatever it is, what is declared next is followed
                log.exception("cannot follow the cluster's %s %r here", *entry.key[:3:2])

    def _make(
        self, vhost: VirtualHost, entry: SharedExchange | SharedQueue | SharedBinding
    ) -> None:
        match entry:
            case SharedExchange() if self._keeps_exchanges or not self._is_over(entry.owner):
                vhost.exchanges.follow_exchange(exchange_of(entry))
            case SharedQueue() if not self._is_over(entry.owner):
                self._queues_of(vhost).follow(entry)
            case SharedBinding() if vhost.exchanges.get(entry.source) is not None:
                binding = binding_of(entry)
                if entry.kind == QUEUE and not self._is_declared(entry):
                    vhost.entry_of(f"queue/{entry.destination}")  # its part here of a sharded one
                vhost.exchanges.follow_binding(entry.source, binding)

    def _is_declared(self, binding: SharedBinding) -> bool:
        """Return whether the cluster has the queue of a binding, or a stream of its name."""
        vhost, name = binding.vhost, binding.destination
        declarations = self._cluster.declarations
        is_queue = declarations.topology.queue(vhost, name) is not None
        return is_queue or declarations.find(STREAM_KIND, vhost, name) is not None

    @property
    def _keeps_exchanges(self) -> bool:
        """Whether exchanges that are not durable outlive the incarnation that declared them.

        Clients of other containers use them as well, whose containers have not been started anew.
        """
        return self._cluster.declarations.level >= APPLY_LEVEL

    def _is_over(self, owner: Owner | None) -> bool:
        """Return whether something was owned by this container before it was started last."""
        if owner is None or owner.container != self._own.container:
            return False
        return owner.incarnation < self._own.incarnation

    def _remove(
        self, vhost: VirtualHost, entry: SharedExchange | SharedQueue | SharedBinding
    ) -> None:
        match entry:
            case SharedExchange():
                vhost.exchanges.follow_no_exchange(entry.name)
            case SharedQueue():
                self._queues_of(vhost).follow_no_more(entry)
            case SharedBinding() if vhost.exchanges.get(entry.source) is not None:
                vhost.exchanges.follow_no_binding(entry.source, binding_of(entry))

    # -- declaring from here

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except (CogworkError, OSError, ValueError) as error:
                log.debug("cannot declare what is only here: %s", error)

    async def _look(self) -> None:
        if not self.is_active:
            return
        await self._end(
            EndIncarnations(self._own.container, self._own.incarnation, self._keeps_exchanges)
        )
        for vhost in list(self._vhosts.values()):
            if vhost.exchanges.is_to_be_shared:
                self._queues_of(vhost).drop_unshared(self._own.container)
                await self._share(vhost)
        if self._service.leads(STREAM):
            await self._end_those_gone()

    async def leave(self) -> None:
        """End what this incarnation owns: the container leaves for good."""
        if not self.is_active:
            return
        try:
            await self._end(EndIncarnations(self._own.container, self._own.incarnation + 1))
        except CogworkError as error:
            log.warning("the cluster keeps for ten minutes what is not durable here: %s", error)

    async def _end(self, command: EndIncarnations) -> None:
        if self.state.has_ended(command):
            kinds = "queues" if command.keeps_exchanges else "queues and exchanges"
            log.info(
                "deleting the %s of container %s that are not durable", kinds, command.container
            )
            await self.change(command)

    async def _end_those_gone(self) -> None:
        now_s, linked = time.monotonic(), self._linked()
        owners = self.state.owners
        self._seen_s = {
            each: now_s if each in linked else self._seen_s.get(each, now_s)
            for each in owners
            if each != self._own.container
        }
        for container, seen_s in list(self._seen_s.items()):
            if now_s - seen_s > GONE_S:
                await self.forget(container)

    async def forget(self, container: str) -> None:
        """End what a container owns that is gone for good."""
        lives = [
            each.owner.incarnation
            for each in self.state
            if not isinstance(each, SharedBinding)
            and each.owner is not None
            and each.owner.container == container
        ]
        if lives:
            await self._end(EndIncarnations(container, max(lives) + 1))

    async def _share(self, vhost: VirtualHost) -> None:
        """Declare what is only here: exchanges first, then queues, then what binds them."""
        topology, exchanges = vhost.topology, vhost.exchanges
        if topology is None:
            return
        exchanges.is_to_be_shared = False
        queues = self._queues_of(vhost)
        try:
            for exchange in exchanges.own():
                await _told(topology.declare_exchange(exchange))
            await queues.share(topology, self._own.container)
            for source, binding in exchanges.own_bindings():
                kind, name = binding.destination
                if kind == EXCHANGE or (kind == QUEUE and not queues.is_private(name)):
                    await _told(topology.bind(source, binding))
        except ExchangeError:
            exchanges.is_to_be_shared = True  # the cluster does not answer now
            raise
        exchanges.keep_no_shared()


async def _told(work: Coroutine[object, object, object]) -> None:
    """Declare something; where it is refused, people are told.

    Raises:
        ExchangeError: The cluster does not answer.
    """
    try:
        await work
    except ExchangeError as error:
        if error.code == INTERNAL_ERROR:
            raise
        log.error("cannot declare for the cluster what is here: %s", error)


async def _logged(work: Coroutine[object, object, object]) -> None:
    try:
        await work
    except (CogworkError, ProtocolError) as error:
        log.warning("cannot delete for the cluster what has ended here: %s", error)

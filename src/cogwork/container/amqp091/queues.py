"""The queues of a virtual host as AMQP 0-9-1 declares them (§1.7, and RabbitMQ's arguments).

Theory of operation. A queue Q is the node at `queue/Q`, whoever made it. What AMQP 0-9-1 says of a
queue besides its node's options (whose alone it is, whether it goes with its last consumer, when it
expires, the arguments as they were given) is kept here for as long as that node stands. For a queue
that others have made, or that was on disk, it is what the node's options say.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.tables import decode_table
from cogwork.container.amqp091.faults import shown_vhost
from cogwork.container.amqp091.queue_arguments import (
    MILLISECONDS,
    arguments_of,
    check_equal,
    options_of,
)
from cogwork.container.amqp091.streams import BasicStreams
from cogwork.container.federation.questions import COUNTS, GIVE_UP, PURGE, RESERVE, OwnerAway
from cogwork.container.vhost.private_names import is_generated
from cogwork.plugin.capabilities import Removable, Storing, replica_of
from cogwork.plugin.node import Refused
from cogwork.router.addresses import Distribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.amqp091.types import Table
    from cogwork.cluster.topology import SharedQueue
    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.federation.remote_consumer import RemoteConsumer
    from cogwork.container.vhost.shared import VhostTopology
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.router.addresses import AddressRule

__all__ = ("BasicQueues", "DeclaredQueue", "Traits", "address_of", "rule_of_queue")

log = logging.getLogger("cogwork")

PREFIX = "queue/"

RESERVED_S = 3.0
"""So long a consumer of another container has to come that was told that it may."""

DELETED_AT_ONCE = 100
"""Of the queues of a connection that has gone: some 5 ms, in which nobody else has a turn."""


def address_of(name: str) -> str:
    """Return the address of a queue."""
    return PREFIX + name


class Owner(Protocol):
    """A connection that has queues for itself."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""


class QueueConsumer(Protocol):
    """A consumer, as the queue sees it.

    Attributes:
        is_active: Whether it gets messages.
        is_exclusive: Whether nobody else may take from there.
    """

    is_active: bool
    is_exclusive: bool

    @property
    def has_room(self) -> bool:
        """Whether it can take a message now."""

    def activate(self) -> None:
        """Get messages from now on."""

    def detach(self) -> None:
        """End it: its queue goes."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What a declaration says of a queue besides the options of its node.

    Attributes:
        is_durable: Whether it outlives the container.
        is_auto_delete: Whether it goes with its last consumer.
        owner: The connection that has it alone; None for everybody's.
        arguments: As they were given.
        is_server_named: Whether its name was made up here.
    """

    is_durable: bool
    is_auto_delete: bool = False
    owner: Owner | None = None
    arguments: Table = field(default_factory=dict)
    is_server_named: bool = False

    @property
    def is_private(self) -> bool:
        """Whether it is a private queue: it lives and dies at its container, in a cluster, too."""
        return self.owner is not None or (self.is_server_named and not self.is_durable)

    @property
    def expires_s(self) -> float | None:
        """After how long without use it goes by its arguments; None for never."""
        value = self.arguments.get("x-expires")
        return value / MILLISECONDS if isinstance(value, int) else None


@dataclass(slots=True, eq=False)
class DeclaredQueue:
    """A queue that is there.

    Attributes:
        name: Without the prefix of its address.
        node: What keeps its messages.
        traits: What its declaration says besides.
        consumers: Those of AMQP 0-9-1, in the order in which they came.
        is_restored: Whether others have made it, or it was on disk: then its next declaration says
            what its options do not.
        had_consumers: Whether it ever had any.
        used_s: When it was last used, by the monotonic clock.
        policy_expires_s: After how long without use it goes by its policy; None for never.
        fetching: How many of other containers take one message and go: its node feeds them, too.
        shared: What the cluster has of it; None where no cluster has it.
    """

    name: str
    node: Storing
    traits: Traits
    consumers: dict[QueueConsumer, None] = field(default_factory=dict)
    is_restored: bool = False
    had_consumers: bool = False
    shared: SharedQueue | None = None
    used_s: float = field(default_factory=time.monotonic)
    policy_expires_s: float | None = None
    fetching: int = 0
    _reservations: dict[int, tuple[float, bool]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Its address."""
        return address_of(self.name)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another container has its messages: what is asked of it, is asked there."""
        replica = replica_of(self.node)
        return replica is not None and replica.epoch is None

    @property
    def is_private(self) -> bool:
        """Whether it lives and dies at its container, in a cluster, too."""
        return self.traits.is_private

    @property
    def takes_now(self) -> bool:
        """Whether nothing waits for a consumer, and one has room."""
        counts = self.node.store.counts()
        if counts["ready"]:
            return False
        active = [each for each in self.consumers if each.is_active]
        return counts["consumers"] > len(active) or any(each.has_room for each in active)

    @property
    def message_count(self) -> int:
        """Counts what waits for a consumer, if it is here."""
        return self.node.store.counts()["ready"]

    @property
    def consumer_count(self) -> int:
        """Counts its consumers, whatever they speak, if it is here."""
        waiting = max(0, len(self.consumers) - 1) if self.has_single_active else 0
        return self.node.store.counts()["consumers"] - self.fetching + waiting

    @property
    def has_single_active(self) -> bool:
        """Whether one consumer at a time gets messages."""
        return self.traits.arguments.get("x-single-active-consumer") is True

    @property
    def is_taken(self) -> bool:
        """Whether a consumer has it alone: then it is the only one."""
        first = next(iter(self.consumers), None)
        self._forget_reservations()
        is_reserved = any(is_exclusive for _, is_exclusive in self._reservations.values())
        return is_reserved or (first is not None and first.is_exclusive)

    @property
    def reserved_count(self) -> int:
        """Counts the consumers of other containers that are about to come."""
        self._forget_reservations()
        return len(self._reservations)

    def reserve(self, ticket: int, *, is_exclusive: bool) -> bool:
        """Keep a place for a consumer of another container; return whether there is one."""
        expected = self.consumer_count + self.reserved_count
        if self.is_taken or (is_exclusive and expected):
            return False
        self._reservations[ticket] = (time.monotonic() + RESERVED_S, is_exclusive)
        return True

    def _forget_reservations(self) -> None:
        """Give the places up whose consumers have not come in time."""
        if self._reservations:
            now_s = time.monotonic()
            kept = {key: each for key, each in self._reservations.items() if each[0] > now_s}
            self._reservations = kept

    def use(self) -> None:
        """Take note that somebody uses it."""
        self.used_s = time.monotonic()

    def enter(self, consumer: QueueConsumer) -> None:
        """Take a consumer in: it gets messages now, or as soon as it is the only one.

        Raises:
            Refused: The queue does not take it.
        """
        # Of a queue elsewhere its owner decides who gets messages.
        if not self.has_single_active or not self.consumers or self.is_elsewhere:
            consumer.activate()
        self.consumers[consumer] = None
        self.had_consumers = True

    def others(self) -> Iterable[object]:
        """List its consumers."""
        return tuple(self.consumers)

    def enter_far(self, consumer: RemoteConsumer) -> None:
        """Take a consumer of another container in.

        Raises:
            Refused: Another one has the queue alone, or this one wants to and does not.
        """
        self._reservations.pop(consumer.ticket, None)
        expected = self.consumer_count + self.reserved_count
        if self.is_taken or (consumer.is_exclusive and expected):
            text = f"queue {self.name!r:.200} is in exclusive use"
            raise Refused(text, Condition.RESOURCE_LOCKED)
        self.enter(consumer)

    def note_fetching(self, count: int) -> None:
        """Count more of those that take one message and go, or fewer."""
        self.fetching += count
        self.use()

    def leave_far(self, consumer: RemoteConsumer) -> None:
        """Let a consumer of another container go."""
        if consumer in self.consumers:
            self.leave(consumer)

    def leave(self, consumer: QueueConsumer) -> None:
        """Take note that a consumer has gone: another one may get messages in its place."""
        del self.consumers[consumer]
        self.use()
        first = next(iter(self.consumers), None)
        if first is not None and not first.is_active:
            first.activate()

    @property
    def is_abandoned(self) -> bool:
        """Whether it goes, because its last consumer has: its owner knows of all of them."""
        if self.is_elsewhere or not self.traits.is_auto_delete:
            return False
        self.had_consumers = self.had_consumers or bool(self.consumer_count)
        return self.had_consumers and not self.consumer_count

    @property
    def is_left(self) -> bool:
        """Whether consumers here were perhaps the last ones of a queue that goes with these."""
        has_gone = self.had_consumers and not self.consumers
        return has_gone and self.is_elsewhere and self.traits.is_auto_delete

    def is_expired(self, now_s: float) -> bool:
        """Return whether nobody has used it for too long."""
        bounds_s = [each for each in (self.traits.expires_s, self.policy_expires_s) if each]
        if not bounds_s or self.is_elsewhere:
            return False
        if self.consumer_count:
            self.used_s = now_s
        return now_s - self.used_s >= min(bounds_s)


class Counts(NamedTuple):
    """What the owner of a queue counts.

    Attributes:
        messages: What waits for a consumer.
        consumers: Those at all containers.
        is_taken: Whether one of them has it alone.
        is_done: Whether a place was reserved, if that was asked for.
    """

    messages: int
    consumers: int
    is_taken: bool = False
    is_done: bool = True


class BasicQueues:
    """Those of one virtual host.

    Attributes:
        streams: Queues that are streams.
        ready_elsewhere: Queues that other containers have and that take a message now.
        unanswered_until_s: Until when the cluster is not asked what else there is: nobody answers.
    """

    def __init__(self, vhost: VirtualHost) -> None:
        """Know of none yet."""
        self.streams = BasicStreams(vhost)
        self.ready_elsewhere: set[str] = set()
        self.unanswered_until_s = 0.0
        vhost.exchanges.private.takes_now = self.takes_now
        self._vhost = vhost
        vhost.standings = self
        self._known: dict[str, DeclaredQueue] = {}
        self._mortal: dict[str, DeclaredQueue] = {}
        self._has_looked = False
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._looked_at = (0, 0)

    def standing_at(self, address: str) -> DeclaredQueue | None:
        """Return a queue for the consumers of other containers; None where there is none."""
        return self.find(address.removeprefix(PREFIX)) if address.startswith(PREFIX) else None

    def place(self, name: str) -> str:
        """Name a queue as RabbitMQ does in errors."""
        return f"queue '{name}' in vhost '{shown_vhost(self._vhost.name)}'"

    def find(self, name: str) -> DeclaredQueue | None:
        """Return a queue; None where there is none."""
        node = self._vhost.nodes.get(address_of(name))
        if not isinstance(node, Storing):
            self._known.pop(name, None)
            return None
        known = self._known.get(name)
        owner = None if known is None else known.traits.owner
        if known is not None and owner is not None and owner.is_over and known.node is node:
            self.delete(known)  # its turn has not come yet
            return None
        if known is None or known.node is not node:
            known = self._known[name] = self._restored(name, node)
        self._take_shared(known)
        return known

    def _take_shared(self, queue: DeclaredQueue) -> None:
        """Go by what the cluster has of a queue, where it has one of that name."""
        topology = self._vhost.topology
        shared = None if topology is None else topology.queue(queue.name)
        if shared is None or queue.shared is shared:
            return
        queue.shared, queue.is_restored = shared, False
        arguments = decode_table(shared.arguments)
        queue.traits = Traits(shared.durable, shared.auto_delete, arguments=arguments)
        self._note_mortal(queue)

    def is_private(self, name: str) -> bool:
        """Return whether there is a queue that lives and dies at this container."""
        queue = self.find(name)
        return queue is not None and queue.is_private

    def _restored(self, name: str, node: Storing) -> DeclaredQueue:
        """Return a queue that others have made, or that was on disk."""
        traits = _traits_of(self._vhost.nodes.rules[address_of(name)])
        kept = None if self._vhost.kept_queues is None else self._vhost.kept_queues.find(name)
        if kept is None or not traits.is_durable:
            queue = DeclaredQueue(name, node, traits, is_restored=True)
            self._note_mortal(queue)
            return queue
        queue = DeclaredQueue(name, node, Traits(True, kept.is_auto_delete, None, kept.arguments))
        self._note_mortal(queue)
        return queue

    def demand(self, name: str, connection: object) -> DeclaredQueue:
        """Return a queue that a connection may use.

        Raises:
            ProtocolError: There is none (404), or it is another connection's (405).
        """
        queue = self.find(name)
        if queue is None:
            self.demand_free(name)
            raise ProtocolError(ReplyCode.NOT_FOUND, f"no {self.place(name)}")
        self._demand_unlocked(queue, connection)
        return queue

    def takes_now(self, name: str) -> bool:
        """Return whether consumers of a queue can take a message now, before all others."""
        queue = self.find(name)
        if queue is None:
            return False
        return name in self.ready_elsewhere if queue.is_elsewhere else queue.takes_now

    def demand_free(self, name: str) -> None:
        """Check that no connection to another container has a queue of a name for itself.

        Raises:
            ProtocolError: One has (405).
        """
        if self._vhost.exchanges.holder_of(name) is not None:
            raise self._locked(name)

    def _demand_unlocked(self, queue: DeclaredQueue, connection: object) -> None:
        owner = queue.traits.owner
        if owner is not None and owner is not connection:
            raise self._locked(queue.name)

    def _locked(self, name: str) -> ProtocolError:
        return ProtocolError(
            ReplyCode.RESOURCE_LOCKED,
            f"cannot obtain exclusive access to locked {self.place(name)}. It could be originally "
            "declared on another connection or the exclusive property value does not match that "
            "of the original declaration.",
        )

    def demand_equal(self, queue: DeclaredQueue, traits: Traits, connection: object) -> None:
        """Check that a redeclaration says what is so.

        Raises:
            ProtocolError: It does not (406), or the queue is another connection's (405).
        """
        self._demand_unlocked(queue, connection)
        there, place = queue.traits, self.place(queue.name)
        if traits.owner is not there.owner:
            raise self._locked(queue.name)
        if queue.is_restored:
            there = replace(traits, is_durable=there.is_durable)
        _demand_bit("durable", place, traits.is_durable, there.is_durable)
        _demand_bit("auto_delete", place, traits.is_auto_delete, there.is_auto_delete)
        if queue.is_restored:
            told = arguments_of(options_of(traits.arguments, place))
            check_equal(told, queue.traits.arguments, place)
        check_equal(traits.arguments, there.arguments, place)
        if queue.is_restored:
            self._keep(queue.name, there)
        queue.traits, queue.is_restored = there, False
        self._note_mortal(queue)

    def declare(
        self, name: str, traits: Traits, options: Mapping[str, Any], makers: Makers
    ) -> DeclaredQueue:
        """Make a queue.

        Args:
            name: Its name.
            traits: What its declaration says.
            options: Its node's.
            makers: For whom it is made.

        Raises:
            Refused: There can be no such queue, or a maker has too many.
        """
        address = address_of(name)
        _, inherited = self._vhost.rule_of(address)
        rule = rule_of_queue(address, inherited, traits, options)
        self._vhost.declare(address, rule, makers, is_in_turn=True)
        node = self._vhost.nodes[address]
        assert isinstance(node, Storing)
        if traits.is_private or traits.is_server_named:
            self._vhost.exchanges.private.add_queue(name, is_reserved=not is_generated(name))
        queue = self._known[name] = DeclaredQueue(name, node, traits)
        self._keep(name, traits)
        self._note_mortal(queue)
        return queue

    def _keep(self, name: str, traits: Traits) -> None:
        """Keep over a restart what a queue was declared with, if it is."""
        kept = self._vhost.kept_queues
        if kept is not None and traits.is_durable and traits.owner is None:
            kept.put(name, is_auto_delete=traits.is_auto_delete, arguments=traits.arguments)

    def delete(self, queue: DeclaredQueue) -> None:
        """Give a queue up with what it holds, and end its consumers."""
        if self._known.get(queue.name) is queue:
            del self._known[queue.name]
        node = queue.node
        for consumer in list(queue.consumers):
            consumer.detach()
        if self._vhost.nodes.get(queue.address) is not node:
            return  # it went with the last of them
        if isinstance(node, Removable):
            node.end_links()
            if queue.shared is None or self._has_messages(queue.shared, node):
                node.delete()
        self._vhost.remove_node(queue.address)

    # -- what another container owns

    async def counts(
        self, queue: DeclaredQueue, ticket: int = 0, *, is_exclusive: bool = False
    ) -> Counts:
        """Return what a queue has, wherever that is.

        Args:
            queue: Which one.
            ticket: By what a consumer that comes next is told there; 0 for none.
            is_exclusive: Whether that one wants the queue alone.

        Raises:
            ProtocolError: Its owner cannot be reached (404).
        """
        if not queue.is_elsewhere:
            return Counts(queue.message_count, queue.consumer_count, queue.is_taken)
        asked = {RESERVE: ticket, "exclusive": int(is_exclusive)} if ticket else {}
        said = await self._ask(queue, COUNTS, **asked)
        is_done = bool(said["is-done"])
        return Counts(said["ready"], said["consumers"], bool(said.get("is-taken")), is_done)

    async def purge(self, queue: DeclaredQueue) -> int:
        """Drop what waits in a queue that another container owns; return how much that was.

        Raises:
            ProtocolError: Its owner cannot be reached (404).
        """
        return (await self._ask(queue, PURGE))["purged"]

    async def give_up(self, queue: DeclaredQueue, *, if_unused: bool, if_empty: bool) -> Counts:
        """Delete a queue whose home is another container; return what it had.

        Args:
            queue: Which one.
            if_unused: Whether it stays if it has consumers.
            if_empty: Whether it stays if it has messages.

        Raises:
            ProtocolError: Its home cannot be reached (404), or it stays (406).
        """
        said = await self._ask(
            queue, GIVE_UP, **{"if-unused": int(if_unused), "if-empty": int(if_empty)}
        )
        counts = Counts(said["ready"], said["consumers"])
        if not said["is-done"]:
            self.demand_disused(queue.name, counts, if_unused=if_unused, if_empty=if_empty)
        self.delete(queue)
        return counts

    def demand_disused(self, name: str, counts: Counts, *, if_unused: bool, if_empty: bool) -> None:
        """Check what a client wants to be so of a queue that it deletes.

        Raises:
            ProtocolError: It is not (406).
        """
        why = None
        if if_unused and counts.consumers:
            why = "in use"
        elif if_empty and counts.messages:
            why = "not empty"
        if why is not None:
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, f"{self.place(name)} {why}")

    async def _ask(self, queue: DeclaredQueue, question: str, **details: int) -> Mapping[str, int]:
        reach = self._vhost.reach
        try:
            if reach is None:
                raise OwnerAway(queue.address, "")
            return await reach.questions.ask(queue.address, question, **details)
        except OwnerAway as away:
            raise self.away(queue, away.owner) from None

    def away(self, queue: DeclaredQueue, owner: str) -> ProtocolError:
        """Say as RabbitMQ does that the container which has a queue cannot be reached."""
        kind = "durable " if queue.traits.is_durable else ""
        place = f"{kind}{self.place(queue.name)}"
        text = f"home node '{owner}' of {place} is down or inaccessible"
        if not owner:
            text = f"no majority of the replicas of {place} can be reached"
        return ProtocolError(ReplyCode.NOT_FOUND, text)

    def end_connection(self, connection: Owner) -> None:
        """Give up what was a connection's alone, some now and the rest in later turns."""
        mine = [each for each in self._known.values() if each.traits.owner is connection]
        self._delete_some(mine)

    def _delete_some(self, queues: list[DeclaredQueue]) -> None:
        for queue in queues[:DELETED_AT_ONCE]:
            self.delete(queue)
        rest = queues[DELETED_AT_ONCE:]
        if rest:
            asyncio.get_running_loop().call_soon(self._delete_some, rest)

    def tick(self, now_s: float) -> None:
        """Give up what has expired, or has nobody left; end consumers whose home is away."""
        self._cancel_away()
        if not self._has_looked:
            self._look_for_kept()
        self._look_for_policies()
        for name, queue in list(self._mortal.items()):
            if self._known.get(name) is not queue or self.find(name) is not queue:
                del self._mortal[name]
            elif queue.is_abandoned or queue.is_expired(now_s):
                self.end(queue)
            elif queue.is_left:
                self._end_for_all(queue)

    def end(self, queue: DeclaredQueue) -> None:
        """Give up a queue that goes by itself: one that the cluster has goes everywhere."""
        if queue.shared is None:
            self.delete(queue)
        else:
            self._end_for_all(queue)

    def _end_for_all(self, queue: DeclaredQueue) -> None:
        """Have the cluster delete a queue; where it does not, the next tick tries again."""
        if queue.name not in self._ending:
            task = asyncio.get_running_loop().create_task(self._delete_for_all(queue))
            self._ending[queue.name] = task

    async def _delete_for_all(self, queue: DeclaredQueue) -> None:
        """Delete a queue of the cluster, unless its last consumer was here and others are not."""
        topology = self._vhost.topology
        try:
            is_left = queue.is_left and not (await self.counts(queue)).consumers
            has_ended = queue.is_abandoned or queue.is_expired(time.monotonic())
            if topology is not None and (has_ended or (is_left and queue.is_left)):
                await topology.delete_queue(queue.name)
        except (ProtocolError, CogworkError) as error:
            log.debug("%s stays for now: %s", self.place(queue.name), error)
        finally:
            del self._ending[queue.name]

    def _has_messages(self, shared: SharedQueue, node: Storing) -> bool:
        """Return whether the messages of a queue of the cluster are here."""
        if shared.home:
            return shared.home == self._vhost.container_id
        replica = replica_of(node)
        return replica is not None and replica.epoch is not None

    # -- what a cluster has

    def is_shared(self, name: str) -> bool:
        """Return whether a queue is the cluster's."""
        queue = self.find(name)
        return queue is not None and queue.shared is not None

    def is_to_be_shared(self, queue: DeclaredQueue, wanted: Traits) -> bool:
        """Return whether a queue that is only here is to be the cluster's when it is declared."""
        topology = self._vhost.topology
        is_clusters = topology is not None and topology.is_active and not wanted.is_private
        return is_clusters and queue.shared is None and not self._is_configured(queue.address)

    def _is_configured(self, address: str) -> bool:
        """Return whether the configuration has a queue itself: it stays what it is there."""
        return self._vhost.table.resolve(address).pattern == address

    def demand_undeclared(self, name: str) -> None:
        """Check that a queue that is here can become the cluster's.

        Raises:
            ProtocolError: It is in use as one that nobody has declared (406).
        """
        node = self._vhost.nodes.get(address_of(name))
        if not isinstance(node, Storing) or replica_of(node) is not None:
            return
        counts = node.store.counts()
        rule = self._vhost.nodes.rules[address_of(name)]
        is_basic = rule.options.get("in_doubt") == "redeliver"  # declared so, before a restart
        if not is_basic and (counts["ready"] or counts["consumers"]):
            text = f"{self.place(name)} is in use undeclared, each container with a part of it"
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, f"{text}: empty it first")

    def follow(self, shared: SharedQueue) -> None:
        """Have a queue of the cluster here: its messages, or what leads to them.

        Raises:
            ProtocolError: An argument cannot be used here.
            Refused: There can be no such queue here.
        """
        address = address_of(shared.name)
        arguments = decode_table(shared.arguments)
        traits = Traits(shared.durable, shared.auto_delete, arguments=arguments)
        if shared.home:
            _, inherited = self._vhost.rule_of(address)
            options = options_of(arguments, self.place(shared.name))
            rule = rule_of_queue(address, inherited, traits, options)
            self._vhost.declare_homed(address, rule, shared.home)
        queue = self.find(shared.name)
        if queue is not None:
            self._take_shared(queue)

    def follow_no_more(self, shared: SharedQueue) -> None:
        """Have a queue no longer that the cluster has not any more."""
        queue = self.find(shared.name)
        if queue is None or queue.shared is None or queue.shared.number != shared.number:
            return
        self.delete(queue)

    def drop_unshared(self, own: str) -> None:
        """Give up queues kept here for the cluster that it has deleted while this one was away."""
        topology = self._vhost.topology
        for address, node in list(self._vhost.nodes.items()):
            replica = replica_of(node)
            if topology is None or replica is None or replica.home != own:
                continue
            name, rule = address.removeprefix(PREFIX), self._vhost.nodes.rules[address]
            is_given = self._vhost.table.resolve(address).options.get("home") is not None
            is_basic = address.startswith(PREFIX) and rule.options.get("in_doubt") == "redeliver"
            if is_basic and not is_given and topology.queue(name) is None:
                log.warning("%s was deleted while this container was away", self.place(name))
                queue = self.find(name)
                if queue is not None:
                    self.delete(queue)

    async def share(self, topology: VhostTopology, own: str) -> None:
        """Declare for the cluster what was declared here before it could have queues.

        Raises:
            ExchangeError: The cluster does not answer.
        """
        for queue in list(self._known.values()):
            if queue.is_private or queue.is_restored or queue.shared is not None:
                continue
            traits = queue.traits
            await topology.declare_queue(
                queue.name,
                durable=traits.is_durable,
                auto_delete=traits.is_auto_delete,
                arguments=traits.arguments,
                home=own,
            )

    def _cancel_away(self) -> None:
        """Tell the consumers of a queue whose home is away that they get nothing (RabbitMQ)."""
        reach = self._vhost.reach
        for address in () if reach is None else reach.homes.away():
            queue = self._known.get(address.removeprefix(PREFIX))
            for consumer in () if queue is None else tuple(queue.consumers):
                consumer.detach()

    def demand_home(self, queue: DeclaredQueue) -> None:
        """See that the home of a queue is not away.

        Raises:
            ProtocolError: It is (404).
        """
        reach, replica = self._vhost.reach, replica_of(queue.node)
        if reach is not None and replica is not None and reach.homes.is_away(queue.address):
            raise self.away(queue, replica.owner or "")

    def _look_for_kept(self) -> None:
        """Know of the queues that were declared before a restart, as some of them expire."""
        self._has_looked = True
        kept = self._vhost.kept_queues
        for name in () if kept is None else kept.names():
            self.find(name)

    def _look_for_policies(self) -> None:
        """Have the queues expire that policies let expire now, whoever has made them."""
        policies, nodes = self._vhost.policies, self._vhost.nodes
        looked_at = (policies.version, nodes.changes if policies.let_expire else 0)
        if looked_at == self._looked_at:
            return
        are_others, self._looked_at = looked_at[0] != self._looked_at[0], looked_at
        names = [each.removeprefix(PREFIX) for each in nodes.storing if each.startswith(PREFIX)]
        # What is known has been looked at by these policies: there may be thousands of queues.
        for name in names if are_others else [each for each in names if each not in self._known]:
            queue = self.find(name)
            if queue is not None:
                self._note_mortal(queue)

    def _note_mortal(self, queue: DeclaredQueue) -> None:
        """Look at a queue with each tick that may go by itself."""
        queue.policy_expires_s = self._vhost.policies.expires_s(queue.address)
        expires = queue.policy_expires_s or "x-expires" in queue.traits.arguments
        if expires or queue.traits.is_auto_delete:
            self._mortal[queue.name] = queue


def _traits_of(rule: AddressRule) -> Traits:
    """Tell what a declaration would have to say of a queue that others have made."""
    options = {**rule.options, "ttl_s": rule.ttl_s, "dead_letter": rule.dead_letter}
    own = arguments_of({key: value for key, value in options.items() if value is not None})
    return Traits(rule.options.get("durability") != "memory", arguments=own)


def rule_of_queue(
    address: str, inherited: AddressRule, traits: Traits, options: Mapping[str, Any]
) -> AddressRule:
    """Return the rule of a queue's node.

    Args:
        address: The queue's.
        inherited: The rule that holds for its address otherwise.
        traits: What its declaration says.
        options: What its arguments say.
    """
    own = dict(options)
    if traits.owner is not None:
        own["home"] = None  # it is where its connection is
    durability = "auto" if traits.is_durable else "memory"
    if inherited.options.get("durability") in ("disk", "replicated") and traits.is_durable:
        durability = str(inherited.options["durability"])
    own |= {"durability": durability, "in_doubt": "redeliver"}
    ttl_s = own.pop("ttl_s", inherited.ttl_s)
    dead_letter = own.pop("dead_letter", inherited.dead_letter)
    return replace(
        inherited,
        prefix=None,
        pattern=address,
        kind="queue",
        distribution=Distribution.BALANCED,
        options={**inherited.options, **own},
        ttl_s=ttl_s,
        dead_letter=dead_letter,
    )


def _demand_bit(name: str, place: str, wanted: bool, is_so: bool) -> None:
    if wanted != is_so:
        words = ("false", "true")
        raise ProtocolError(
            ReplyCode.PRECONDITION_FAILED,
            f"inequivalent arg '{name}' for {place}: received '{words[wanted]}' but current is "
            f"'{words[is_so]}'",
        )

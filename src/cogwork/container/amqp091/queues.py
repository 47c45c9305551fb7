"""The queues of a virtual host as AMQP 0-9-1 declares them (§1.7, and RabbitMQ's arguments).

Theory of operation. A queue Q is the node at `queue/Q`, whoever made it. What AMQP 0-9-1 says of a
queue besides its node's options (whose alone it is, whether it goes with its last consumer, when it
expires, the arguments as they were given) is kept here for as long as that node stands. For a queue
that others have made, or that was on disk, it is what the node's options say.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.tables import decode_table
from cogwork.container.amqp091.declared_queue import (
    PREFIX,
    Counts,
    DeclaredQueue,
    Owner,
    Traits,
    address_of,
)
from cogwork.container.amqp091.faults import shown_vhost
from cogwork.container.amqp091.mortal_queues import MortalQueues
from cogwork.container.amqp091.queue_arguments import (
    arguments_of,
    check_equal,
    options_of,
)
from cogwork.container.amqp091.streams import BasicStreams
from cogwork.container.federation.questions import COUNTS, GIVE_UP, PURGE, RESERVE, OwnerAway
from cogwork.container.vhost.private_names import is_generated
from cogwork.plugin.capabilities import Removable, Storing, replica_of
from cogwork.router.addresses import Distribution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.topology import SharedQueue
    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.shared import VhostTopology
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.router.addresses import AddressRule

__all__ = ("BasicQueues", "rule_of_queue")

log = logging.getLogger("cogwork")

DELETED_AT_ONCE = 100
"""Of the queues of a connection that has gone: some 5 ms, in which nobody else has a turn."""


class BasicQueues:
    """Those of one virtual host.

    Attributes:
        streams: Queues that are streams.
        mortal: Those that may go by themselves.
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
        self._owned: dict[Owner, dict[DeclaredQueue, None]] = {}
        self.mortal = MortalQueues(self, vhost)

    def standing_at(self, address: str) -> DeclaredQueue | None:
        """Return a queue for the consumers of other containers; None where there is none."""
        return self.find(address.removeprefix(PREFIX)) if address.startswith(PREFIX) else None

    def is_locked(self, address: str, connection: object) -> bool:
        """Return whether a queue is another connection's alone, here or at another container."""
        name = address.removeprefix(PREFIX)
        if name == address:
            return False
        known = self._known.get(name)
        if known is None or self._vhost.nodes.get(address) is not known.node:
            return self._vhost.exchanges.holder_of(name) is not None
        owner = known.traits.owner
        return owner is not None and owner is not connection and not owner.is_over

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
        self.mortal.note(queue)

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
            self.mortal.note(queue)
            return queue
        queue = DeclaredQueue(name, node, Traits(True, kept.is_auto_delete, None, kept.arguments))
        self.mortal.note(queue)
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
        self.mortal.note(queue)

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
        if traits.owner is not None:
            self._owned.setdefault(traits.owner, {})[queue] = None
        self._keep(name, traits)
        self.mortal.note(queue)
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
        owner = queue.traits.owner
        if owner in self._owned:
            self._owned[owner].pop(queue, None)
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

    def is_known(self, name: str) -> bool:
        """Return whether it was looked up, or declared, how a queue was declared."""
        return name in self._known

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
        mine = self._owned.pop(connection, {})
        self._delete_some([each for each in mine if self._known.get(each.name) is each])

    def _delete_some(self, queues: list[DeclaredQueue]) -> None:
        for queue in queues[:DELETED_AT_ONCE]:
            self.delete(queue)
        rest = queues[DELETED_AT_ONCE:]
        if rest:
            asyncio.get_running_loop().call_soon(self._delete_some, rest)

    def tick(self, now_s: float) -> None:
        """Give up what has expired, or has nobody left; end consumers whose home is away."""
        self._cancel_away()
        self.mortal.tick(now_s)

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

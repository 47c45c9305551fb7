"""A virtual host: an address space of its own, with the nodes in it.

Theory of operation. An address comes into being when somebody names it: the address table says its
rule, the rule its node. What the data plane then needs is an `AddressEntry`: plain routing has one
of the rule's distribution, a node hands out its own. An entry that nobody is attached to, and that
holds nothing, is given up after a while, so that names that were used once do not pile up.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.container.connections.node_shares import FROM_AFAR, LIMITED_KINDS
from cogwork.container.federation.transfers import moved_here
from cogwork.container.vhost.exchanges import Exchanges
from cogwork.container.vhost.exclusive import Holders
from cogwork.container.vhost.hosted_nodes import HostedNodes, demand_visible
from cogwork.container.vhost.immediate import ImmediateEntries
from cogwork.container.vhost.reply_addresses import REPLY_PREFIX
from cogwork.container.vhost.temporary import TemporaryNodes
from cogwork.container.vhost.terminus_kinds import address_named, address_said
from cogwork.dataplane.addresses.entry import (
    BALANCED_CODE,
    CLOSEST_CODE,
    MULTICAST_CODE,
    AddressEntry,
)
from cogwork.dataplane.addresses.forwarding import ForwardInlet
from cogwork.dataplane.addresses.space import AddressSpace
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import (
    Bindable,
    Exchanging,
    Removable,
    Replicated,
    Shareable,
    Storing,
    Streaming,
    replica_of,
)
from cogwork.plugin.dead_letters import dead_letter
from cogwork.plugin.effects import Send
from cogwork.plugin.node import Refused
from cogwork.plugin.node_kinds import provides
from cogwork.router.addresses import (
    EXCHANGE_RULE,
    Accept,
    AddressRule,
    AddressTable,
    Distribution,
    InvalidAddressError,
    Unmatched,
    is_default,
    normalize,
)
from cogwork.router.mesh.bounds import ADDRESS_BYTES_MAX
from cogwork.router.patterns import address_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.node_shares import Makers, NodeShares
    from cogwork.container.federation.questions import Answer
    from cogwork.container.federation.remote_consumer import Standings
    from cogwork.container.mesh.reach import Reach
    from cogwork.container.schemas.service import Schemas
    from cogwork.container.vhost.kept_exchanges import KeptExchanges
    from cogwork.container.vhost.policies import Policies
    from cogwork.container.vhost.shared import VhostTopology
    from cogwork.dataplane.core import Core
    from cogwork.plugin.audits import Audits
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.engine.engines import Engines
    from cogwork.plugin.journals import Journals
    from cogwork.plugin.management import ContainerView
    from cogwork.plugin.node import Node

__all__ = ("VirtualHost",)

IDLE_S = 60.0
"""An address nobody uses is forgotten after this long, with its counts."""

ADDRESSES_MAX = 1_000_000
"""Addresses in use at once; a client that makes up names is stopped here."""

_CODES = {
    Distribution.MULTICAST: MULTICAST_CODE,
    Distribution.CLOSEST: CLOSEST_CODE,
    Distribution.BALANCED: BALANCED_CODE,
}


class VirtualHost:
    """One virtual host's addresses and nodes.

    Attributes:
        core: Where the entries live.
        name: Empty for the default one.
        container_id: Of the container that it belongs to.
        table: Which rule holds for which address.
        space: The entries, as the data plane finds them.
        near: Those that other containers' messages go to: this container's consumers and nodes.
        reach: What can be reached in other containers; None while nothing can.
        holders: Who has an address of it alone.
        standings: Its queues as AMQP 0-9-1 knows their consumers; None while nobody does.
        nodes: By address, or by prefix for those that serve one.
        exchanges: Those that are declared, with their bindings.
        topology: What the cluster has of exchanges, queues and bindings; None without a cluster.
        kept_queues: What durable queues were declared with; None keeps nothing of that.
        forwarded: Takes what other containers send to private queues.
        immediate: Where messages come in that are delivered at once or not at all.
        view: The container, for the management node; None has no such node.
        schemas: What its publishers' messages are held to; None holds them to nothing.
        shares: How many queues and streams may be made, and by whom.
        engines: What keeps the streams; None keeps none.
    """

    def __init__(
        self,
        core: Core,
        name: str,
        table: AddressTable,
        *,
        container_id: str,
        shard: int,
        run: Callable[[VirtualHost, Iterable[Effect]], None],
        shares: NodeShares,
        engines: Engines | None = None,
        journals: Journals | None = None,
        audits: Audits | None = None,
        kept: KeptExchanges | None = None,
    ) -> None:
        """Start without addresses.

        Args:
            core: Where the entries live.
            name: The virtual host's name; empty for the default one.
            table: Its address rules.
            container_id: For the nodes.
            shard: Of this container's parts of queues.
            run: Carries out what a node wants done in this virtual host.
            shares: How many queues and streams may be made, and by whom.
            engines: For the streams.
            journals: For the queues on disk.
            audits: For whoever follows the queues.
            kept: The exchanges that are on disk; None keeps none there.
        """
        self.core = core
        self.name = name
        self.container_id = container_id
        self.table = table
        self.space = AddressSpace(core, self._resolve)
        self.space.meaning = partial(address_said, self)
        self.near = AddressSpace(core, self._resolve_near)
        self.reach: Reach | None = None
        self.standings: Standings | None = None
        self.holders = Holders(self)
        self.topology: VhostTopology | None = None
        self.view: ContainerView | None = None
        self.schemas: Schemas | None = None
        self._declared: dict[str, AddressRule] = {}
        self._idle_since: dict[bytes, tuple[float, int]] = {}
        self._run = run
        self._dead_lettering: set[AddressEntry] = set()
        self.engines = engines
        self.shares = shares
        self.nodes = HostedNodes(
            self,
            container_id=container_id,
            shard=shard,
            emit=lambda effects: run(self, effects),
            shares=shares,
            journals=journals,
            audits=audits,
        )
        self.temporary = TemporaryNodes(self)
        self._start_topics()
        self.kept_queues = None if kept is None else kept.queues
        self.exchanges = Exchanges(
            name,
            self._exchange_node(),
            shares=shares,
            node_at=self.nodes.get,
            take_out=self._take_out,
            kept=kept,
        )
        self._start_private_queues()

    @property
    def policies(self) -> Policies:
        """What its queues and exchanges have besides what was declared of them."""
        return self.nodes.policies

    def _start_private_queues(self) -> None:
        """Take what other containers send to private queues, and what is delivered at once."""
        self.exchanges.alternate_by_policy = self.policies.alternate_of
        self.policies.on_changed = self.exchanges.policies_changed
        private = self.exchanges.private
        private.find_reply = lambda address: self.space.entries.get(address.encode())
        self.forwarded = AddressEntry(self.core, "$forwarded", CLOSEST_CODE)
        inlet = ForwardInlet(self.core, partial(private.inlet_for, self.core))
        self.forwarded.add_outlet(inlet)
        self.immediate = ImmediateEntries(self.core, self.exchanges)

    def _exchange_node(self) -> Exchanging:
        """Make the node of exchanges; it is there even if its addresses are ruled otherwise."""
        rule = self.table.resolve("exchange/a")
        if rule.prefix is not None and provides(rule.kind, Exchanging):
            node = self.nodes.of(rule, rule.prefix)
        else:
            node = self.nodes.make(EXCHANGE_RULE, "exchange")
        assert isinstance(node, Exchanging)
        return node

    def _start_topics(self) -> None:
        """Make the plain topic node now, so that anonymous senders reach it without a look-up."""
        rule = self.table.resolve("topic/a")
        if rule.prefix is None or not provides(rule.kind, Bindable):
            return
        node = self.nodes.of(rule, rule.prefix)
        assert isinstance(node, Bindable)
        self.space.topic_prefix = f"{rule.prefix}/".encode()
        self._bound_lives(node.root, rule)
        self.space.topic_root = node.root
        self.near.topic_prefix = self.space.topic_prefix
        self.near.topic_root = node.near_root
        self._except_topics(rule.prefix)

    def _except_topics(self, prefix: str) -> None:
        """Have anonymous senders' messages looked up where a rule is more specific."""
        words = _first_words_below(prefix, self.table.rules) or None
        self.space.topic_exceptions = self.near.topic_exceptions = words

    # -- addresses

    def take_table(self, table: AddressTable) -> list[str]:
        """Go by another table from now on.

        Returns:
            The addresses and nodes in use that stay what they were.
        """
        before, self.table = self.table, table
        if self.space.topic_root is not None:
            self._except_topics(self.space.topic_prefix.decode()[:-1])
        kept = [
            key
            for key, rule in self.nodes.rules.items()
            if not rule.serves_like(self._rule_at(f"{key}/a" if rule.prefix == key else key))
        ]
        for entries in (self.space.entries, self.near.entries):
            for address, entry in entries.items():
                name = address.decode()
                was, rule = before.resolve(name), self._rule_at(name)
                if was.kind != "direct" or name in self._declared or name.startswith(REPLY_PREFIX):
                    continue
                if rule.kind != "direct" or rule.distribution is not was.distribution:
                    kept.append(name)
                    continue
                self._bound_lives(entry, rule)
                _set_acceptance(entry, rule)
        if self.reach is not None:
            self.reach.disks.rules_changed()
        return sorted(set(kept))

    def rule_of(self, address: str) -> tuple[str, AddressRule]:
        """Return an address as normalised, and its rule.

        Raises:
            Refused: The address names nothing.
        """
        name = _normalized(address)
        rule = self._rule_at(name)
        _demand_unreserved(name, rule)
        return name, rule

    async def move_items(self, node: Replicated, question: Mapping[str, object]) -> Answer:
        """Move items of a queue that this container owns, for another container."""
        return await moved_here(node, lambda effects: self._run(self, effects), question)

    def lacks_stream(self, address: str) -> bool:
        """Return whether an address is a stream's, and nobody has declared that one here."""
        try:
            name, rule = self.rule_of(address)
        except Refused:  # as an attach to it will be
            return False
        return (
            name not in self.nodes and rule.kind == "stream" and rule.options.get("engine") is None
        )

    def _rule_at(self, name: str) -> AddressRule:
        return self._declared.get(name) or self.table.resolve(name)

    def entry_of(self, address: str, makers: Makers = ()) -> AddressEntry:
        """Return the entry of an address; make it where it is new.

        Args:
            address: Which one.
            makers: For whom its node is made, if it has to be.

        Raises:
            Refused: Nothing can be sent there, or a maker has too many nodes.
        """
        name = _normalized(address)
        entry: AddressEntry | None = self.space.entries.get(name.encode())
        return entry if entry is not None else self._add_entry(name, makers)

    def _add_entry(self, name: str, makers: Makers) -> AddressEntry:
        if len(self.space.entries) >= ADDRESSES_MAX:
            raise Refused(
                f"{ADDRESSES_MAX} addresses are in use", Condition.RESOURCE_LIMIT_EXCEEDED
            )
        rule = self._rule_at(name)
        _demand_unreserved(name, rule)
        entry = self._make_entry(name, rule, makers)
        self._bound_lives(entry, rule)
        self.space.entries[name.encode()] = entry
        if rule.kind in LIMITED_KINDS:
            self.exchanges.note_replaced(name)
        near = self.near.entries.get(name.encode())
        if near is not None and near is not entry:
            entry.show_near(near)
        if self.reach is not None:
            self.reach.entry_added(name, entry)
        return entry

    def near_entry_of(self, address: str) -> AddressEntry:
        """Return the entry of an address for what comes from other containers.

        Raises:
            Refused: Nothing can be sent there.
        """
        name = _normalized(address)
        entry: AddressEntry | None = self.near.entries.get(name.encode())
        return entry if entry is not None else self._add_near_entry(name)

    def _add_near_entry(self, name: str) -> AddressEntry:
        rule = self._rule_at(name)
        if name.startswith(REPLY_PREFIX):
            found: AddressEntry | None = self.space.entries.get(name.encode())
            if found is None:
                raise Refused(f"{name!r} has gone", Condition.NOT_FOUND)
            return found
        if provides(rule.kind, Bindable):
            node = self.nodes.of(rule, name)
            assert isinstance(node, Bindable)
            entry = node.near_entry(name)
        elif rule.kind == "direct":
            entry = AddressEntry(self.core, name, _CODES[rule.distribution])
            _set_acceptance(entry, rule)
        else:
            shared = self.entry_of(name, FROM_AFAR)
            queue = self.nodes.get(name)
            return queue.near_entry() if isinstance(queue, Shareable) else shared
        self._bound_lives(entry, rule)
        self.near.entries[name.encode()] = entry
        if rule.kind == "direct":
            self.entry_of(name).show_near(entry)
        return entry

    def _resolve_near(self, address: bytes) -> AddressEntry | None:
        """Find the entry for the `to` of a message from another container."""
        try:
            return self.near_entry_of(address.decode())
        except (Refused, UnicodeDecodeError):
            return None

    def _bound_lives(self, entry: AddressEntry, rule: AddressRule) -> None:
        """Say how long messages may wait, and where those go that nobody took in that time.

        Nodes that keep items see to their own.
        """
        if provides(rule.kind, Storing):
            return
        entry.ttl_s = rule.ttl_s or 0.0
        address = (rule.dead_letter or "").removeprefix("/")
        is_elsewhere = address not in {"", entry.name}
        entry.dead_letter = partial(self._send_dead_letter, address) if is_elsewhere else None

    def _send_dead_letter(
        self, address: str, entry: AddressEntry, message: bytes, reason: str
    ) -> bool:
        """Send a dead letter; tell whether it has not come back to where it is from.

        Addresses may be each other's, and nobody be at any of them: then the dead letter is none,
        and whoever sent the message is told so.
        """
        if entry in self._dead_lettering:
            self._dead_lettering.clear()
            return False
        self._dead_lettering.add(entry)
        source = self._source_of(entry, message)
        try:
            died_ms = time.time_ns() // 1_000_000
            made = dead_letter(message, source, reason, None, 0, died_ms=died_ms, target=address)
            self._run(self, [Send(address, made)])
            return entry in self._dead_lettering
        finally:
            self._dead_lettering.discard(entry)

    def _source_of(self, entry: AddressEntry, message: bytes) -> str:
        """Return where a message was sent: what it says itself counts as far as that is here.

        Whoever has dead letters sent back may send to more addresses than who wrote this one.
        """
        try:
            to = (Message.decode(message).to or "").removeprefix("/")
        except ProtocolError:  # what a sender writes need not be a message of AMQP 1.0
            return entry.name
        prefix = self.space.topic_prefix if entry is self.space.topic_root else None
        if prefix is not None and to.encode().startswith(prefix):
            return to
        return entry.name

    def _make_entry(self, name: str, rule: AddressRule, makers: Makers) -> AddressEntry:
        if rule.kind != "direct":
            return self.nodes.of(rule, name, makers).entry(name)
        entry = AddressEntry(self.core, name, _CODES[rule.distribution])
        _set_acceptance(entry, rule)
        return entry

    def _resolve(self, address: bytes) -> AddressEntry | None:
        """Find the entry for a message's `to`; None where it leads nowhere."""
        try:
            name, rule = self.rule_of(address_named(address.decode(), self))
            if self.reach is not None:
                if name.startswith(REPLY_PREFIX):
                    return self.reach.reply_routes.entry_of(name)
                if rule.kind == "direct" and self.reach.is_wanted(name):
                    return self._used(name, self.entry_of(name))
            is_anycast = rule.kind == "direct" and rule.distribution is not Distribution.MULTICAST
            if is_anycast and rule.dead_letter is None:
                entry = self.space.entries.get(name.encode())
            else:
                entry = self.entry_of(name, self._makers_of_message(name, rule))
            return None if entry is None else self._used(name, entry)
        except (Refused, UnicodeDecodeError):
            return None

    def _makers_of_message(self, name: str, rule: AddressRule) -> Makers:
        """Tell for whom a node is made that a message names which has just come.

        Raises:
            Refused: Whoever sent it makes too many a second.
        """
        link = None if self.space.asker is None else self.space.asker.owner
        if link is None:
            return ()
        makers = cast("ClientContext", link.session.connection.context).makers
        if self.lacks_node(name, rule):
            self.shares.demand_turn(makers)
        return makers

    def lacks_node(self, name: str, rule: AddressRule) -> bool:
        """Tell whether a queue or stream would have to be made at an address."""
        return rule.kind in LIMITED_KINDS and name not in self.nodes

    def demand_reply_address(self, address: str) -> None:
        """Check that a reply address is there, or may be at another container that is known.

        Raises:
            Refused: It is nowhere.
        """
        name = _normalized(address)
        if name.encode() in self.space.entries:
            return
        if self.reach is None or not self.reach.reply_routes.may_lead_to(name):
            text = f"{name!r:.200}: there is no such reply address, or none any more"
            raise Refused(text, Condition.NOT_FOUND)

    def demand_reachable(self, address: str, makers: Makers) -> None:
        """Check that messages to an address could go somewhere, if perhaps not now.

        Args:
            address: Which one.
            makers: For whom its node is made, if it has to be.

        Raises:
            Refused: They could not; a sender that attached there would be told the same.
        """
        name, rule = self.rule_of(address)
        is_anycast = rule.kind == "direct" and rule.distribution is not Distribution.MULTICAST
        if not is_anycast and not name.startswith(REPLY_PREFIX):
            if self.lacks_node(name, rule):
                self.shares.demand_turn(makers)
            self.entry_of(name, makers)

    def is_served(self, address: str) -> bool:
        """Return whether a node, or a receiver anywhere in the mesh, stands at an address."""
        try:
            name, rule = self.rule_of(address)
        except Refused:
            return False
        if rule.kind != "direct":
            return True
        entry: AddressEntry | None = self.space.entries.get(name.encode())
        if entry is not None and any(
            isinstance(each, OutgoingLink) and not each.is_branch for each in entry.outlets
        ):
            return True
        return self.reach is not None and bool(self.reach.wanted_at(name))

    def _used(self, name: str, entry: AddressEntry) -> AddressEntry:
        """Take note that messages come to an entry which name their address themselves."""
        entry.is_used = True
        if self.reach is not None:
            self.reach.use(name, entry)
        return entry

    def add_dynamic(self, address: str) -> AddressEntry:
        """Make the entry of a dynamic source; it goes with its link."""
        entry = AddressEntry(self.core, address, CLOSEST_CODE)
        entry.is_used = True
        self.space.entries[address.encode()] = entry
        return entry

    def drop(self, address: str) -> None:
        """Forget an address at once."""
        entry = self.space.entries.pop(address.encode(), None)
        if entry is not None:
            if self.reach is not None:
                self.reach.entry_dropped(address)
            entry.close()

    def _take_out(self, belongs: Callable[[str], bool]) -> list[AddressEntry]:
        """Forget the addresses that belong to what has gone; return their entries, not closed."""
        names = [name for each in self.space.entries if belongs(name := each.decode())]
        for name in names:
            if self.reach is not None:
                self.reach.entry_dropped(name)
        return [self.space.entries.pop(name.encode()) for name in names]

    # -- who uses an address

    def add_publisher(self, address: str, entry: AddressEntry) -> None:
        """Take note of a link that sends to an address."""
        if self.reach is not None:
            self.reach.use(address.removeprefix("/"), entry)

    def add_consumer(self, address: str, entry: AddressEntry, link: OutgoingLink) -> None:
        """Let a link take from a plain address."""
        entry.add_outlet(link)
        name = address.removeprefix("/")
        if self.reach is not None and not name.startswith(REPLY_PREFIX):
            self.reach.add_consumer(name, entry)

    def remove_consumer(self, address: str, entry: AddressEntry, link: OutgoingLink) -> None:
        """Take a link from a plain address."""
        entry.remove_outlet(link)
        name = address.removeprefix("/")
        if self.reach is not None and not name.startswith(REPLY_PREFIX):
            self.reach.remove_consumer(name, entry)

    # -- nodes

    def declare(
        self, address: str, rule: AddressRule, makers: Makers = (), *, is_in_turn: bool = False
    ) -> None:
        """Give one address a rule of its own, and make its node.

        Args:
            address: Which one.
            rule: That is its own from now on.
            makers: For whom the node is made.
            is_in_turn: Whether the makers have waited for their turn.

        Raises:
            Refused: There can be no such node, or a maker has too many.
        """
        demand_visible(address)
        if not is_in_turn:
            self.shares.demand_turn(makers)
        self._declared[address] = rule
        try:
            self.entry_of(address, makers)
        except Refused:
            del self._declared[address]
            raise

    def declare_homed(
        self, address: str, rule: AddressRule, home: str, makers: Makers = ()
    ) -> None:
        """Give one address a queue that one container keeps, and all others lead to.

        What is there already of the same home stays as it is. So do the items of a queue here that
        had no home, if this container is to be it.

        Args:
            address: Which one.
            rule: The queue's.
            home: The id of the container that keeps it.
            makers: For whom the node is made.

        Raises:
            Refused: There can be no such queue, a maker has too many, or a queue here has items
                that its home would not have.
        """
        homed = replace(rule, options={**rule.options, "home": home})
        node = self.nodes.get(address)
        there = replica_of(node)
        if there is not None and there.home == home:
            return
        if isinstance(node, Replicated) and there is None and home == self.container_id:
            node.settle_at(home)
            self._declared[address] = self.nodes.rules[address] = homed
            self.nodes[address] = node  # whoever follows the nodes looks at it again
            return
        if node is not None:
            self._make_way(address, node)
        self.declare(address, homed, makers, is_in_turn=True)

    def _make_way(self, address: str, node: Node) -> None:
        """Give up a queue that has nothing, for another one of its address.

        Raises:
            Refused: It has items, or is no queue.
        """
        if not isinstance(node, Storing) or not isinstance(node, Removable):
            text = f"{address!r:.200} is a {self.nodes.kind_at(address)} here"
            raise Refused(text, Condition.PRECONDITION_FAILED)
        if node.store.depth:
            text = f"{address!r:.200} has {node.store.depth} items here, and has its home elsewhere"
            raise Refused(text, Condition.PRECONDITION_FAILED)
        node.end_links("has its home elsewhere now")
        node.delete()
        self.remove_node(address)

    def remove_node(self, key: str) -> None:
        """Give up a node and its entry, and what was declared of it."""
        self._declared.pop(key, None)
        entry = self.space.entries.pop(key.encode(), None)
        if entry is not None and self.reach is not None:
            self.reach.entry_dropped(key)
        self.nodes.remove(key)
        self.exchanges.drop_queue(key)
        self.exchanges.note_replaced(key)
        if self.kept_queues is not None:
            self.kept_queues.remove(key.removeprefix("queue/"))
        if self.reach is not None:
            self.reach.disks.changed(key)

    def give_back(self) -> None:
        """Have every stream return what waits to be appended."""
        for node in self.nodes.values():
            if isinstance(node, Streaming):
                node.give_back()

    def close_streams(self) -> None:
        """Let every stream go; it stays with its engine."""
        for key, node in list(self.nodes.items()):
            if isinstance(node, Streaming):
                self.remove_node(key)

    def close(self) -> None:
        """Give up every node and address."""
        self.exchanges.close()
        if self.schemas is not None:
            self.schemas.close()
        for key in list(self.nodes):
            self.remove_node(key)
        for address in list(self.space.entries):
            self.drop(address.decode())

    # -- time

    def forget_idle(self, now_s: float) -> None:
        """Give up the addresses that nobody has used for a while."""
        self._forget_near()
        idle: dict[bytes, tuple[float, int]] = {}
        for address, entry in list(self.space.entries.items()):
            if not entry.is_idle or address.decode() in self.temporary:
                continue
            since_s, received = self._idle_since.get(address, (now_s, entry.received))
            if received != entry.received:
                since_s = now_s
            if now_s - since_s < IDLE_S:
                idle[address] = (since_s, entry.received)
                continue
            self.space.entries.pop(address, None)
            if self.reach is not None:
                self.reach.entry_dropped(address.decode())
            entry.close()
        self._idle_since = idle

    def _forget_near(self) -> None:
        """Give up the entries by which no other container sends any more."""
        for address, entry in list(self.near.entries.items()):
            if not entry.sources and not entry.held:
                del self.near.entries[address]
                outer = self.space.entries.get(address)
                if outer is not None and outer.near is entry:
                    outer.near = None
                entry.close()


def _demand_unreserved(name: str, rule: AddressRule) -> None:
    """Check that a name is not one of those that containers keep for themselves.

    Raises:
        Refused: It begins like one of theirs, and there is no such.
    """
    if name.startswith("$") and is_default(rule):
        text = f"{name!r:.200} is reserved: what begins with $ is a container's, as $management is"
        raise Refused(text, Condition.NOT_FOUND)


def _set_acceptance(entry: AddressEntry, rule: AddressRule) -> None:
    """Tell a plain address when it accepts a multicast message."""
    entry.awaits_settlement = rule.accept is Accept.SETTLED
    entry.release_unmatched = rule.unmatched is Unmatched.RELEASE


def _first_words_below(prefix: str, rules: Iterable[AddressRule]) -> tuple[bytes, ...]:
    """List the first words below a prefix for which a rule with a longer one may hold."""
    below = f"{prefix}/"
    longer = [rule.prefix for rule in rules if rule.prefix and rule.prefix.startswith(below)]
    return tuple(sorted({address_words(each[len(below) :])[0].encode() for each in longer}))


def _normalized(address: str) -> str:
    """Return an address as tables and nodes know it.

    Raises:
        Refused: The address names nothing.
    """
    try:
        name = normalize(address)
        size_bytes = len(name.encode())
        if size_bytes > ADDRESS_BYTES_MAX:
            # Other containers could not be told of it.
            text = f"an address of {size_bytes} bytes; at most {ADDRESS_BYTES_MAX} are allowed"
            raise Refused(text, Condition.INVALID_FIELD)
        return name
    except InvalidAddressError as error:
        raise Refused(str(error), Condition.INVALID_FIELD) from error

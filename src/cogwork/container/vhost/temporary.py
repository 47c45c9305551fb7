"""Temporary queues and topics: made by a link with a dynamic target, gone with its connection.

Theory of operation. A temporary node has a reply address: those lead to its container from anywhere
in the mesh, are never advertised, and nobody else can make one. Its queue is kept in memory and is
not among the virtual host's nodes, so it is not shared, moved or declared. Only the connection that
made it receives from it, and anybody who knows its address sends to it: that is what JMS asks of
its temporary destinations, and what a reply-to needs.

It goes with its connection; with its link, already, where the client asked for that by the lifetime
policy `delete-on-close` (AMQP 1.0 §3.5.10) and closes the link.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.container.vhost.terminus_kinds import wants_topic
from cogwork.dataplane.addresses.entry import MULTICAST_CODE, AddressEntry
from cogwork.plugin.capabilities import Storing
from cogwork.plugin.node import Refused
from cogwork.router.addresses import AddressRule, Distribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.amqp.terminus import Target
    from cogwork.container.connections.peer import Peer
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.plugin.effects import Effect

__all__ = ("TemporaryNode", "TemporaryNodes", "do_nothing", "goes_with_its_link")

LIFETIME_POLICY = Symbol("lifetime-policy")
DELETE_ON_CLOSE = (Symbol("amqp:delete-on-close:list"), ULong(0x2B))

TEMPORARY_MAX = 1_000
"""Of one connection: a client has one for its replies, or one for each request under way."""

OPTIONS = {"in_doubt": "redeliver", "durability": "memory"}


def do_nothing() -> None:
    """Nobody has to know."""


@dataclass(slots=True, eq=False)
class TemporaryNode:
    """One temporary queue or topic.

    Attributes:
        address: A reply address.
        owner: The connection that made it.
        rule: As if it were configured.
        entry: Where its messages come in.
        queue: Keeps them; None for a topic.
        on_removed: Called when it has gone.
    """

    address: str
    owner: Peer
    rule: AddressRule
    entry: AddressEntry
    queue: Storing | None
    on_removed: Callable[[], None] = do_nothing


class TemporaryNodes(dict[str, TemporaryNode]):
    """Those of one virtual host, by address."""

    def __init__(self, vhost: VirtualHost) -> None:
        super().__init__()
        self._vhost = vhost
        self._counts: Counter[Peer] = Counter()

    def add(self, address: str, target: Target, owner: Peer) -> TemporaryNode:
        """Make what a dynamic target asks for.

        Raises:
            Refused: The connection has too many.
        """
        if self._counts[owner] >= TEMPORARY_MAX:
            text = f"this connection has {TEMPORARY_MAX} temporary queues and topics already"
            raise Refused(text, Condition.RESOURCE_LIMIT_EXCEEDED)
        queue: Storing | None = None
        if wants_topic(target.capabilities):
            rule = AddressRule(pattern=address, distribution=Distribution.MULTICAST)
            entry = AddressEntry(self._vhost.core, address, MULTICAST_CODE)
        else:
            rule = AddressRule(
                pattern=address, distribution=Distribution.BALANCED, kind="queue", options=OPTIONS
            )
            made = self._vhost.nodes.make(rule, address)
            assert isinstance(made, Storing)
            queue, entry = made, made.entry(address)
        entry.is_used = True
        node = self[address] = TemporaryNode(address, owner, rule, entry, queue)
        self._counts[owner] += 1
        self._vhost.space.entries[address.encode()] = entry
        return node

    def of(self, address: str, owner: Peer) -> TemporaryNode | None:
        """Return the node that a connection wants to receive from; None where it is not temporary.

        Raises:
            Refused: It is another connection's.
        """
        node = self.get(address.removeprefix("/"))
        if node is not None and node.owner is not owner:
            text = f"{address!r} is temporary: only the connection that made it receives there"
            raise Refused(text, Condition.RESOURCE_LOCKED)
        return node

    def remove(self, address: str) -> None:
        """Delete a node with all that it holds; its links are detached."""
        node = self.pop(address, None)
        if node is None:
            return
        self._counts[node.owner] -= 1
        self._vhost.space.entries.pop(address.encode(), None)
        queue = node.queue
        outlets = [link for link, _, _ in queue.store.holders()] if queue else node.entry.outlets
        error = AmqpError(condition=Condition.RESOURCE_DELETED, description=f"{address} has gone")
        for end in (*outlets, *node.entry.sources):
            if end.owner is not None:
                end.owner.detach(error)
        if queue is not None:
            queue.close()
        else:
            node.entry.close()
        node.on_removed()

    def remove_those_of(self, owner: Peer) -> None:
        """Delete the nodes of a connection that has ended."""
        if self._counts[owner]:
            for address in [each.address for each in self.values() if each.owner is owner]:
                self.remove(address)
        self._counts.pop(owner, None)

    def add_consumer(self, address: str, link: OutgoingLink) -> None:
        """Let a link receive from a topic."""
        self[address].entry.add_outlet(link)

    def tick(self, now_s: float) -> Iterator[Effect]:
        """Let items expire, and cease to be in doubt."""
        for node in list(self.values()):
            if node.queue is not None and not node.queue.store.is_idle:
                yield from node.queue.tick(now_s)


def goes_with_its_link(target: Target) -> bool:
    """Tell whether a client asked that what it makes go as soon as it closes the link."""
    policy = (target.dynamic_node_properties or {}).get(LIFETIME_POLICY)
    return isinstance(policy, Described) and policy.descriptor in DELETE_ON_CLOSE

"""Exchanges: a message goes to the queues that its exchange's bindings lead to.

Theory of operation. One node serves every exchange of a virtual host: an address names the
exchange, and perhaps the routing key (`exchange/orders/new.eu`). The data plane keeps the queues of
the keys that were looked up last (`dataplane.addresses.exchange`); what it does not know it asks
here, and the graph of exchanges answers. Exchanges and bindings are declared by the container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp091.strings import octets_of
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.exchange import Changes, ExchangeInlet, Routes
from cogwork.dataplane.addresses.interest import Interest
from cogwork.dataplane.message.basic_conversion import unescaped
from cogwork.plugin.capabilities import Exchanging
from cogwork.plugin.effects import Detach
from cogwork.plugin.message_finder import MessageFinder
from cogwork.plugin.node import Refused
from cogwork.router.exchanges.addresses import exchange_address, name_in
from cogwork.router.exchanges.binding import CONTAINER, QUEUE, Destination
from cogwork.router.exchanges.forwards import ForwardsFound
from cogwork.router.exchanges.graph import DEFAULT, ExchangeGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.plugin.effects import Effect
    from cogwork.plugin.message_finder import Found
    from cogwork.plugin.node import NodeContext, Subscription
    from cogwork.router.exchanges.binding import Routed
    from cogwork.router.exchanges.forwards import Forward
    from cogwork.router.exchanges.graph import Route

__all__ = ("ExchangeNode",)


class ExchangeNode(Exchanging):
    """Every exchange below one prefix."""

    serves_prefix = True
    is_idle = True

    def __init__(self, context: NodeContext) -> None:
        """Start without exchanges but the default one.

        Args:
            context: Its prefix.
        """
        self._core = context.core
        self._prefix = context.address
        self._emit = context.emit
        self._changes = Changes()
        self._routes: dict[str, Routes] = {}
        self._entries: dict[str, AddressEntry] = {}
        self.graph = ExchangeGraph()
        self.find_queue = _find_nothing
        self.find_forward = _find_nobody

    # -- addresses

    def address(self, name: str) -> str:
        """Return the address of an exchange."""
        return exchange_address(name, self._prefix)

    def split(self, address: str) -> tuple[str, bytes | None]:
        """Return the exchange that an address names, and the routing key if it names one.

        Raises:
            Refused: It names no exchange.
        """
        quoted, slash, key = address[len(self._prefix) + 1 :].partition("/")
        if not quoted:
            text = f"{address!r:.200} names no exchange: {self._prefix}/NAME or .../NAME/KEY"
            raise Refused(text, Condition.INVALID_FIELD)
        # Octets that are not UTF-8 are escaped in an address.
        return name_in(quoted), (octets_of(unescaped(key)) if slash else None)

    def entry(self, address: str) -> AddressEntry:
        """Return where messages to an exchange come in.

        Raises:
            Refused: The address names no exchange, or one that is not there.
        """
        name, key = self.split(address)
        if name != DEFAULT and name not in self.graph:
            raise Refused(f"there is no exchange {name!r:.200}", Condition.NOT_FOUND)
        if self.graph.is_internal(name):
            text = f"exchange {name!r:.200} is internal: other exchanges alone send to it"
            raise Refused(text, Condition.NOT_ALLOWED)
        if key is None:
            return self.entry_of(name)
        # With an interest it is idle while nobody is attached, and is forgotten then.
        entry = AddressEntry(self._core, address, CLOSEST_CODE, Interest())
        entry.add_outlet(ExchangeInlet(self._core, self._routes_of(name), key))
        return entry

    def entry_of(self, name: str) -> AddressEntry:
        """Return where the messages of an exchange come in; they say their keys themselves."""
        entry = self._entries.get(name)
        if entry is None:
            entry = AddressEntry(self._core, self.address(name), CLOSEST_CODE)
            entry.add_outlet(ExchangeInlet(self._core, self._routes_of(name)))
            self._entries[name] = entry
        return entry

    def _routes_of(self, name: str) -> Routes:
        routes = self._routes.get(name)
        if routes is None:
            routes = self._routes[name] = Routes(self._changes, _Finder(self, name))
            routes.interest = self.graph.interest(name)
        return routes

    # -- bindings

    def changed(self) -> None:
        """Have the queues of all messages found anew."""
        self._changes.note()

    def removed(self, name: str, entries: Iterable[AddressEntry]) -> None:
        """Give up what there was for an exchange that the graph has no longer.

        Args:
            name: The exchange's.
            entries: Those of its addresses, which the container had.
        """
        self.changed()
        self._routes.pop(name, None)
        own = self._entries.pop(name, None)
        for entry in {*entries} if own is None else {own, *entries}:
            text = f"{entry.name} was deleted"
            self._emit([Detach(link, Condition.RESOURCE_DELETED, text) for link in entry.sources])
            entry.close()

    def entries_of(self, route: Route) -> Found:
        """Return where messages of a route come in, and whether all of that is there."""
        found = [self.find_queue(name) for name in route.queues]
        found += [self.find_forward_entry(each) for each in route.forwards]
        there = [entry for entry in found if entry is not None]
        return there, len(there) == len(found)

    def find_forward_entry(self, forward: Forward) -> AddressEntry | None:
        """Return where messages for another container's private queues come in."""
        return self.find_forward(forward, self._changes)

    # -- what every node does

    def subscribe(self, subscription: Subscription) -> None:
        """Refuse: an exchange keeps nothing."""
        raise Refused(
            f"nothing can be received from {subscription.address!r:.200}: an exchange keeps no "
            "messages; bind a queue to it and receive from that"
        )

    def unsubscribe(self, subscription: Subscription) -> None:
        """Never happens."""

    def tick(self, _now_s: float) -> Iterable[Effect]:
        """Do nothing."""
        return ()

    def figures(self, name: str) -> Mapping[str, int]:
        """Count what has come to an exchange, what went to queues, and what nobody took."""
        routes = self._routes.get(name)
        return {
            "delivered": 0 if routes is None else routes.delivered,
            "unroutable": 0 if routes is None else routes.unroutable,
        }

    def status(self) -> Mapping[str, object]:
        """Count exchanges, bindings, copies that queues got, and messages that nobody took."""
        return {
            "exchanges": len(self.graph),
            "bindings": self.graph.binding_count,
            "delivered": sum(each.delivered for each in self._routes.values()),
            "unroutable": sum(each.unroutable for each in self._routes.values()),
        }

    def close(self) -> None:
        """Give the entries back."""
        for entry in self._entries.values():
            entry.close()
        self._entries.clear()


class _Finder(MessageFinder):
    """Says where the messages of one exchange go."""

    def __init__(self, node: ExchangeNode, name: str) -> None:
        self._node = node
        self._name = name

    def resolve(self, destination: object, /) -> AddressEntry | None:
        """Return where messages of a destination come in; None if it is an exchange."""
        assert isinstance(destination, Destination)
        kind, name = destination
        if kind == QUEUE:
            return self._node.find_queue(name)
        if kind != CONTAINER:
            return None
        found = ForwardsFound()
        found.note(self._name, name)
        return self._node.find_forward_entry(*found.all())

    def entries(self, routed: Routed) -> Found:
        """Return where a message goes, and whether that may be kept for its key."""
        route = self._node.graph.route(self._name, routed)
        entries, are_all_there = self._node.entries_of(route)
        return entries, route.is_by_key and are_all_there


def _find_nothing(_name: str) -> AddressEntry | None:
    """There are no queues until somebody says where."""
    return None


def _find_nobody(_forward: Forward, _changes: Changes) -> AddressEntry | None:
    """There are no other containers until somebody says how to get there."""
    return None

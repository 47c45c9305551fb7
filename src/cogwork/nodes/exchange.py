"""Exchanges: a message goes to the queues that its exchange's bindings lead to.

Theory of operation. One node serves every exchange of a virtual host: an address names the
exchange, and perhaps the routing key (`exchange/orders/new.eu`). The data plane keeps the queues of
the keys that were looked up last (`dataplane.addresses.exchange`); what it does not know it asks
here, and the graph of exchanges answers. Exchanges and bindings are declared by the container.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp091.content import decode_properties, encode_properties
from cogwork.amqp091.errors import ProtocolError as BasicProtocolError
from cogwork.amqp091.strings import octets_of
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.exchange import Changes, ExchangeInlet, Routes
from cogwork.dataplane.addresses.interest import Interest
from cogwork.dataplane.message.basic_conversion import unescaped
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.capabilities import Exchanging
from cogwork.plugin.effects import Detach
from cogwork.plugin.node import Refused
from cogwork.router.exchanges.addresses import exchange_address, name_in
from cogwork.router.exchanges.binding import QUEUE, Destination, Routed
from cogwork.router.exchanges.graph import DEFAULT, ExchangeGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.amqp091.content import BasicProperties
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("ExchangeNode",)

Found = tuple[list[AddressEntry], bool]


class _HeadNeeded(Exception):
    """An exchange decides by more than the key."""


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

    def entries_of(self, queues: Iterable[str]) -> Found:
        """Return where messages of queues come in, and whether all of them are there."""
        found = [self.find_queue(name) for name in queues]
        there = [entry for entry in found if entry is not None]
        return there, len(there) == len(found)

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


class _Finder:
    """Says where the messages of one exchange go."""

    def __init__(self, node: ExchangeNode, name: str) -> None:
        self._node = node
        self._name = name

    def find(self, key: bytes, head: bytes | None, is_basic: bool, /) -> Found | None:
        """Return the addresses of the queues, and whether the key alone has decided.

        None asks for the head of the message.
        """
        routed = Routed((key,), partial(_headers, head, is_basic))
        try:
            return self._entries(routed)
        except _HeadNeeded:
            return None

    def resolve(self, destination: object, /) -> AddressEntry | None:
        """Return where messages of a destination come in; None if it is none of a queue."""
        assert isinstance(destination, Destination)
        kind, name = destination
        return self._node.find_queue(name) if kind == QUEUE else None

    def find_copies(
        self, key: bytes, head: bytes, /
    ) -> tuple[list[AddressEntry], bytes | None] | None:
        """Do the same for a message whose headers may name further keys; BCC is taken out."""
        start = _properties_start(head)
        try:
            properties = decode_properties(head[start:])
        except BasicProtocolError:
            return None
        headers = properties.headers or {}
        keys = (key, *_keys_in(headers, "CC"), *_keys_in(headers, "BCC"))
        entries, _ = self._entries(Routed(keys, lambda: headers))
        if "BCC" not in headers:
            return entries, None
        return entries, _packed(head[: start - 4], _without_bcc(properties))

    def _entries(self, routed: Routed) -> Found:
        route = self._node.graph.route(self._name, routed)
        entries, are_all_there = self._node.entries_of(route.queues)
        return entries, route.is_by_key and are_all_there


def _find_nothing(_name: str) -> AddressEntry | None:
    """There are no queues until somebody says where."""
    return None


def _headers(head: bytes | None, is_basic: bool) -> Mapping[str, object]:
    """Decode a message's headers; what cannot be read has none."""
    if head is None:
        raise _HeadNeeded
    try:
        if is_basic:
            return decode_properties(head[_properties_start(head) :]).headers or {}
        return {str(key): value for key, value in (Message.decode(head).properties or {}).items()}
    except (ProtocolError, BasicProtocolError):
        return {}


def _properties_start(head: bytes) -> int:
    """Return where the properties begin: behind exchange, key and their size."""
    key_at = 1 + head[0]
    return key_at + 1 + head[key_at] + 4


def _keys_in(headers: Mapping[str, object], name: str) -> list[bytes]:
    """Return the routing keys in a header."""
    keys = headers.get(name)
    if not isinstance(keys, list):
        return []
    return [key.encode(errors="surrogateescape") for key in keys if isinstance(key, str)]


def _without_bcc(properties: BasicProperties) -> BasicProperties:
    headers = {key: value for key, value in (properties.headers or {}).items() if key != "BCC"}
    return replace(properties, headers=headers)


def _packed(names: bytes, properties: BasicProperties) -> bytes:
    """Put the head of a message together: exchange and key, and its properties."""
    octets = encode_properties(properties)
    return names + len(octets).to_bytes(4, "big") + octets

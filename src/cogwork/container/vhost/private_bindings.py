"""The private queues of a virtual host, and what other containers are told of their bindings.

Theory of operation. A queue is private that one connection has for itself, or that has its name
from this container. It lives here and is declared nowhere else. Other containers are told of its
bindings, and of its name if a client has chosen that, as of a binding of the default exchange.
Queues that are bound alike count as one (`router.exchanges.forwards`).

What other containers send in consequence is looked up among the private queues alone, by bindings
that are kept apart from the graph for it. So it goes to no queue that its sender knows of itself.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp091.errors import EncodeError
from cogwork.container.vhost.reply_addresses import reply_address_in
from cogwork.dataplane.addresses.exchange import Changes, ExchangeInlet, Routes
from cogwork.plugin.message_finder import MessageFinder
from cogwork.router.exchanges.binding import QUEUE, Routed
from cogwork.router.exchanges.forwards import PrivateBinding, keys_in, route_in
from cogwork.router.exchanges.graph import DEFAULT
from cogwork.router.mesh.bounds import ADDRESS_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogwork.container.vhost.declared_exchange import DeclaredExchange
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.core import Core
    from cogwork.plugin.exchange_types import ExchangeType
    from cogwork.router.exchanges.binding import Binding
    from cogwork.router.exchanges.forwards import ForwardRoute

__all__ = ("PrivateBindings",)

log = logging.getLogger("cogwork")

DEFAULT_TYPE: Final = "direct"


class _Exchange(NamedTuple):
    """An exchange, and its bindings to private queues.

    Attributes:
        kind: Its type.
        matcher: Its bindings, where each matches by itself; else it has none.
        condition: Returns what of a binding decides; None where bindings depend on each other.
    """

    kind: str
    matcher: ExchangeType
    condition: Callable[[Binding], tuple[bytes, Mapping[str, object]]] | None


class PrivateBindings:
    """Those of one virtual host.

    Attributes:
        announce: Tells the other containers of an address, or that it is none any more.
        find_queue: Returns where messages of a queue come in; None if there is no such queue.
        find_reply: Does the same for an address that a client awaits replies at.
        takes_now: Tells whether consumers of a queue can take a message now.
    """

    def __init__(self, find_queue: Callable[[str], AddressEntry | None]) -> None:
        """Know of no private queue."""
        self.announce: Callable[[str, bool], None] = _tell_nobody
        self.find_queue = find_queue
        self.find_reply: Callable[[str], AddressEntry | None] = _find_nobody
        self.takes_now: Callable[[str], bool] = _is_ready
        self._queues: dict[str, str] = {}
        self._told: dict[tuple[str, Binding], str] = {}
        self._counts: Counter[str] = Counter()
        self._exchanges: dict[str, _Exchange] = {}
        self._changes = Changes()

    # -- queues

    def __contains__(self, name: str) -> bool:
        """Return whether a queue is private."""
        return name in self._queues

    def add_queue(self, name: str, *, is_reserved: bool) -> None:
        """Take note of a private queue.

        Args:
            name: Its name.
            is_reserved: Whether other containers are told the name: it does not say where it is.
        """
        told = PrivateBinding(DEFAULT_TYPE, DEFAULT, name.encode(errors="surrogateescape"), {})
        self._queues[name] = told.address if is_reserved else ""
        if is_reserved:
            self._count(told.address)
        self._changes.note()

    def remove_queue(self, name: str) -> None:
        """Take note that a queue has gone, if it was private; its bindings go one by one."""
        told = self._queues.pop(name, "")
        if told:
            self._discount(told)
        self._changes.note()

    # -- exchanges and bindings

    def add_exchange(self, exchange: DeclaredExchange, matcher: ExchangeType) -> None:
        """Take note of an exchange.

        Args:
            exchange: Which one.
            matcher: For its bindings to private queues, besides the graph's.
        """
        condition = getattr(matcher, "condition", None)
        self._exchanges[exchange.name] = _Exchange(exchange.kind, matcher, condition)

    def remove_exchange(self, name: str) -> None:
        """Take note that an exchange has gone; its bindings have gone before."""
        self._exchanges.pop(name, None)

    def bound(self, exchange: str, binding: Binding) -> None:
        """Take note of a binding, if it leads to a private queue."""
        kind, queue = binding.destination
        if kind != QUEUE or queue not in self._queues:
            return
        bound_to = self._exchanges[exchange]
        if bound_to.condition is None:
            key, arguments, named = binding.key, binding.arguments, queue
        else:
            bound_to.matcher.bind(binding)
            self._changes.note()
            (key, arguments), named = bound_to.condition(binding), None
        told = PrivateBinding(bound_to.kind, exchange, key, arguments, named)
        self._told[exchange, binding] = address = _address_of(told)
        if address:
            self._count(address)

    def unbound(self, exchange: str, binding: Binding) -> None:
        """Take note that a binding has gone, if it led to a private queue."""
        address = self._told.pop((exchange, binding), None)
        if address is None:
            return
        bound_to = self._exchanges[exchange]
        if bound_to.condition is not None:
            bound_to.matcher.unbind(binding)
            self._changes.note()
        if address:
            self._discount(address)

    def announce_all(self, announce: Callable[[str, bool], None]) -> None:
        """Tell other containers from now on, and of all that there is."""
        self.announce = announce
        for address in self._counts:
            announce(address, True)

    def _count(self, address: str) -> None:
        self._counts[address] += 1
        if self._counts[address] == 1:
            self.announce(address, True)

    def _discount(self, address: str) -> None:
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]
            self.announce(address, False)

    # -- messages from other containers

    def inlet_for(self, core: Core, route: bytes, keys: bytes) -> ExchangeInlet | None:
        """Return what takes other containers' messages that come with a route and with keys.

        None is returned where these cannot be read.
        """
        try:
            wanted, known_keys = route_in(route), keys_in(keys)
        except ValueError:
            return None
        finder = _PrivateFinder(self, wanted, known_keys)
        # With keys that were read before, the message's own are not asked for.
        key = known_keys[0] if known_keys else None
        return ExchangeInlet(core, Routes(self._changes, finder), key)

    def matching(self, route: ForwardRoute, message: Routed) -> Iterator[str]:
        """Yield the private queues that a message goes to; one may appear more than once."""
        for exchange in route.exchanges:
            found = self._exchanges.get(exchange)
            if found is not None and found.condition is not None:
                for destination in found.matcher.match(message):
                    yield destination.name
        yield from (queue for queue in route.queues if queue in self._queues)

    def is_by_key(self, route: ForwardRoute) -> bool:
        """Return whether keys alone decide where messages go, as long as no binding changes."""
        found = [self._exchanges.get(exchange) for exchange in route.exchanges]
        return all(each is None or each.matcher.is_by_key for each in found)


class _PrivateFinder(MessageFinder):
    """Says where messages go that other containers send by one route."""

    def __init__(
        self, bindings: PrivateBindings, route: ForwardRoute, keys: tuple[bytes, ...]
    ) -> None:
        self._bindings = bindings
        self._route = route
        self._keys = keys

    def entries(self, routed: Routed) -> tuple[list[AddressEntry], bool]:
        """Return the private queues, and whether that may be kept for the message's key."""
        message = Routed(self._keys, lambda: routed.headers) if self._keys else routed
        queues = [*dict.fromkeys(self._bindings.matching(self._route, message))]
        if self._route.is_immediate:
            queues = [each for each in queues if self._bindings.takes_now(each)]
        replies = [reply_address_in(name) for name in self._route.queues]
        found = [self._bindings.find_queue(name) for name in queues]
        found += [self._bindings.find_reply(address) for address in replies if address is not None]
        entries = [entry for entry in found if entry is not None]
        # Whoever awaits replies goes without a word.
        is_for_now = any(replies) or self._route.is_immediate
        may_keep = not is_for_now and len(entries) == len(found)
        return entries, may_keep and self._bindings.is_by_key(self._route)

    def resolve(self, _destination: object, /) -> AddressEntry | None:
        """Never happens: no pattern is matched without Python here."""


def _address_of(binding: PrivateBinding) -> str:
    """Return what a binding is told as; empty where it cannot be told."""
    try:
        address = binding.address
    except EncodeError as error:
        log.error("a binding of %r is not told other containers: %s", binding.exchange, error)
        return ""
    if len(address) <= ADDRESS_BYTES_MAX:
        return address
    log.error(
        "a binding of exchange %r is not told other containers: it takes %d bytes (at most %d)",
        binding.exchange,
        len(address),
        ADDRESS_BYTES_MAX,
    )
    return ""


def _is_ready(_queue: str) -> bool:
    """Take queues for ready until somebody knows better."""
    return True


def _find_nobody(_address: str) -> AddressEntry | None:
    """Nobody awaits replies until somebody says where."""
    return None


def _tell_nobody(_address: str, _is_there: bool) -> None:
    """Have no other containers yet."""

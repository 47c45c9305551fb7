"""The exchanges of a virtual host and their bindings: declared, bound, deleted, for both protocols.

Theory of operation. The node at `exchange/` has the graph of exchanges and sends messages on; here
is decided what may be declared, and what goes along with what. A queue that goes takes its bindings
along, and an exchange that deletes itself goes with the last binding from it, which may take others
along. What is durable is kept on disk (`kept_exchanges`); a binding is if both of its ends are.

What a cluster has is declared elsewhere (`VhostTopology`), and followed here: it is not kept on
disk, goes when the cluster says so, and whoever asks for it meets the same refusals.

Refusals have the reply codes and the wording of RabbitMQ, for clients branch on them.
"""

from __future__ import annotations

import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Final

from cogwork.container.connections.node_shares import BINDINGS, EXCHANGES
from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.container.vhost.private_bindings import PrivateBindings
from cogwork.container.vhost.remote_bindings import RemoteBindings
from cogwork.dataplane.addresses.exchange import Changes
from cogwork.plugin.capabilities import Storing, Streaming
from cogwork.plugin.exchange_types import PluginError, exchange_type
from cogwork.plugin.node import Refused
from cogwork.router.exchanges.binding import (
    CONTAINER,
    EXCHANGE,
    QUEUE,
    Binding,
    Destination,
    InvalidBinding,
    comparable,
    field_type,
)
from cogwork.router.exchanges.errors import ExchangeError
from cogwork.router.exchanges.forwards import Forward, ForwardRoute
from cogwork.router.exchanges.graph import DEFAULT
from cogwork.router.exchanges.names import PREDECLARED, RESERVED, problem_of_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cogwork.container.connections.node_shares import Makers, NodeShares
    from cogwork.container.vhost.kept_exchanges import KeptExchanges
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.plugin.capabilities import Exchanging
    from cogwork.plugin.exchange_types import ExchangeType, ExchangeTypeFactory
    from cogwork.plugin.node import Node
    from cogwork.router.exchanges.binding import Routed
    from cogwork.router.exchanges.graph import Route

__all__ = ("Exchanges",)

log = logging.getLogger("cogwork")

ACCESS_REFUSED, NOT_FOUND, PRECONDITION_FAILED = 403, 404, 406
COMMAND_INVALID, INTERNAL_ERROR = 503, 541

QUEUE_PREFIX: Final = "queue/"
"""What the address of a queue begins with; a binding names what follows."""

STREAM_PREFIX: Final = "stream/"
"""The same of a stream, which is a queue to exchanges where no queue has its name."""

IN_MEMORY: Final = "orb"
"""The engine whose streams do not outlive their container."""

ALTERNATE: Final = "alternate-exchange"

COMPARED: Final = (ALTERNATE, "hash-header", "hash-property")
"""Arguments that a redeclaration must repeat: those that change where messages go."""


class Exchanges:
    """Those of one virtual host. The address `exchange/NAME` is one's node.

    Attributes:
        on_unused: Called with an exchange of the cluster that is to go with its last binding, when
            that was one of a container's alone, and has gone; and with whether it was this one's.
        is_to_be_shared: Whether there may be something that the cluster has not.
        private: Its private queues, which other containers are told of.
        remote: What other containers have told of theirs.
        on_replaced: Called when a queue's name begins to stand for a stream, or does no longer.
        alternate_by_policy: Returns the alternate exchange that a policy names; None for none.
    """

    def __init__(
        self,
        vhost: str,
        node: Exchanging,
        *,
        shares: NodeShares,
        node_at: Callable[[str], Node | None],
        take_out: Callable[[Callable[[str], bool]], list[AddressEntry]],
        kept: KeptExchanges | None = None,
    ) -> None:
        """Have those that are always there, and those that were kept.

        Args:
            vhost: The virtual host's name.
            node: Sends messages on.
            shares: How many there may be, and of whom.
            node_at: Returns the node of a queue or stream by its address.
            take_out: Forgets addresses in use; returns their entries, which are not closed yet.
            kept: Keeps what is durable; None keeps nothing.
        """
        self._vhost = vhost
        self._shares = shares
        self._node_at = node_at
        self._take_out = take_out
        self._kept = kept
        self._declared: dict[str, DeclaredExchange] = {}
        self._makers: dict[str, Makers] = {}
        self._binding_makers: dict[tuple[str, Binding], Makers] = {}
        self._shared: set[str] = set()
        self._shared_bindings: set[tuple[str, Binding]] = set()
        self.on_unused: Callable[[str, bool], object] = _leave
        self.on_replaced: Callable[[], object] = _tell_nobody
        self.alternate_by_policy: Callable[[str], str | None] = _none_named
        self.is_to_be_shared = True
        self._is_closed = False
        self._node = node
        self._prefix = self._node.address("x").removesuffix("x")
        self._node.find_queue = self._find_queue
        self._graph = self._node.graph
        self._holder_of: Callable[[str], str | None] = _held_by_nobody
        self._find_forward = self._node.find_forward
        self._no_keys = Changes()
        self.private = PrivateBindings(self._find_local)
        self.remote = RemoteBindings(
            self._graph,
            self._kind_of,
            self._node.changed,
            partial(self._end_unbound, is_own=False),
        )
        for name, kind in PREDECLARED.items():
            self._add(DeclaredExchange(name, kind), ())
        if kept is not None:
            self._restore(kept)

    def _restore(self, kept: KeptExchanges) -> None:
        for exchange in kept.exchanges():
            try:
                self._add(exchange, ())
            except ExchangeError as error:
                log.error("exchange %r is left out: %s", exchange.name, error)
        for source, binding in kept.bindings():
            if source in self._graph:
                self._graph.bind(source, binding)
            else:
                log.error("a binding of exchange %r is left out, which is not there", source)
        self._node.changed()

    def configure(
        self, exchanges: Iterable[DeclaredExchange], bindings: Iterable[tuple[str, Binding]]
    ) -> None:
        """Declare what a configuration has; what is there otherwise stays, and that is told."""
        self.is_to_be_shared = True
        for each in exchanges:
            try:
                self.declare(
                    each.name,
                    each.kind,
                    durable=each.durable,
                    auto_delete=each.auto_delete,
                    internal=each.internal,
                    arguments=each.arguments,
                )
            except ExchangeError as error:
                log.error("exchange %r stays what it was: %s", each.name, error)
        for source, binding in bindings:
            try:
                self.bind(source, binding.destination, binding.key, binding.arguments)
            except ExchangeError as error:
                log.error("cannot bind %s to %r: %s", binding.destination.name, source, error)

    # -- what is there

    def __len__(self) -> int:
        """Count all but the default exchange."""
        return len(self._declared)

    @property
    def binding_count(self) -> int:
        """How many bindings there are."""
        return self._graph.binding_count

    def __iter__(self) -> Iterator[DeclaredExchange]:
        """Go over all but the default exchange."""
        return iter(tuple(self._declared.values()))

    def get(self, name: str) -> DeclaredExchange | None:
        """Return an exchange; None if there is none of that name."""
        if name == DEFAULT:
            return DeclaredExchange(DEFAULT, "direct")
        return self._declared.get(name)

    def demand(self, name: str) -> DeclaredExchange:
        """Return an exchange.

        Raises:
            ExchangeError: There is none of that name.
        """
        found = self.get(name)
        if found is None:
            raise ExchangeError(NOT_FOUND, f"no {self._named(EXCHANGE, name)}")
        return found

    def bindings(self, name: str) -> tuple[Binding, ...]:
        """List the bindings from an exchange."""
        return () if name == DEFAULT else self._graph.bindings(name)

    def bindings_to(self, destination: Destination) -> list[tuple[str, Binding]]:
        """List the bindings to a queue or an exchange, each with the exchange it leads from."""
        return self._graph.bindings_to(destination)

    def figures(self, name: str) -> Mapping[str, int]:
        """Count what has come to an exchange, what went to queues, and what nobody took."""
        return self._node.figures(name)

    def address(self, name: str) -> str:
        """Return the address of an exchange, which permissions are about."""
        return self._node.address(name)

    def entry(self, name: str) -> AddressEntry:
        """Return where the messages of an exchange come in.

        Raises:
            ExchangeError: There is none, or it is internal.
        """
        if self.demand(name).internal:
            text = f"cannot publish to internal {self._named(EXCHANGE, name)}"
            raise ExchangeError(ACCESS_REFUSED, text)
        return self._node.entry_of(name)

    # -- exchanges

    def declare(
        self,
        name: str,
        kind: str,
        *,
        durable: bool = True,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, object] | None = None,
        makers: Makers = (),
    ) -> bool:
        """Make an exchange; return False if it is there, and the same.

        Args:
            name: Its name.
            kind: Its type.
            durable: Whether it outlives the container.
            auto_delete: Whether it goes with the last binding from it.
            internal: Whether it takes messages from other exchanges alone.
            arguments: What its type heeds, and `alternate-exchange`.
            makers: For whom it is made.

        Raises:
            ExchangeError: The name is reserved, there is no such type, an argument is wrong, the
                exchange is there otherwise, or a maker has too many.
        """
        wanted = DeclaredExchange(name, kind, durable, auto_delete, internal, dict(arguments or {}))
        return self.declare_exchange(wanted, makers)

    def declare_exchange(self, wanted: DeclaredExchange, makers: Makers = ()) -> bool:
        """Make an exchange; see `declare`."""
        if self.has_equal(wanted):
            return False
        self.demand_new(wanted, makers)
        self._add(wanted, makers)
        name = wanted.name
        if wanted.durable and self._kept is not None:
            self._write(partial(self._kept.declare, wanted), partial(self._give_up, name))
        return True

    def has_equal(self, wanted: DeclaredExchange) -> bool:
        """Return whether an exchange is there, and the same.

        Raises:
            ExchangeError: It is there otherwise, or can never be.
        """
        self._demand_type(wanted.kind)
        self._demand_not_default(wanted.name)
        there = self._declared.get(wanted.name)
        if there is not None:
            self._demand_equal(there, wanted)
        return there is not None

    def demand_new(self, wanted: DeclaredExchange, makers: Makers) -> None:
        """Check that an exchange may be made that is not there.

        Raises:
            ExchangeError: The name is reserved, an argument is wrong, or a maker has too many.
        """
        self._demand_name(wanted.name)
        self._demand_share(EXCHANGES, makers)
        self._matcher_of(wanted)

    def _add(self, exchange: DeclaredExchange, makers: Makers) -> None:
        """Put an exchange into the graph.

        Raises:
            ExchangeError: Its type is not there, or takes not its arguments.
        """
        name = exchange.name
        matcher, alternate = self._matcher_of(exchange), self._alternate_of(exchange)
        self._graph.add(name, matcher, alternate, is_internal=exchange.internal)
        self._declared[name] = exchange
        self.private.add_exchange(exchange, self._matcher_of(exchange))
        self.remote.add_exchange(name)
        if name not in PREDECLARED:
            self._makers[name] = makers
            self._shares.take(EXCHANGES, makers)
        self._node.changed()

    def _alternate_of(self, exchange: DeclaredExchange) -> str | None:
        """Return the alternate exchange of one: its argument's, or else its policy's."""
        alternate = exchange.arguments.get(ALTERNATE)
        assert alternate is None or isinstance(alternate, str)
        return self.alternate_by_policy(exchange.name) if alternate is None else alternate

    def policies_changed(self) -> None:
        """Have the alternate exchanges hold that policies name now."""
        for exchange in self._declared.values():
            self._graph.set_alternate(exchange.name, self._alternate_of(exchange))
        self._node.changed()

    def _matcher_of(self, exchange: DeclaredExchange) -> ExchangeType:
        """Make what matches the messages of an exchange.

        Raises:
            ExchangeError: Its type is not there, or takes not its arguments.
        """
        factory = self._demand_type(exchange.kind)
        where = f"in {self._named(EXCHANGE, exchange.name)}"
        alternate = exchange.arguments.get(ALTERNATE)
        if alternate is not None and not isinstance(alternate, str):
            text = f"invalid type '{field_type(alternate)}' for arg '{ALTERNATE}' {where}"
            raise ExchangeError(PRECONDITION_FAILED, text)
        try:
            return factory(exchange.arguments, random.randrange)
        except InvalidBinding as error:
            raise ExchangeError(PRECONDITION_FAILED, f"{error} {where}") from error

    def _demand_type(self, kind: str) -> ExchangeTypeFactory:
        try:
            factory = exchange_type(kind)
        except PluginError as error:
            raise ExchangeError(COMMAND_INVALID, str(error)) from error
        if factory is None:
            raise ExchangeError(COMMAND_INVALID, f"unknown exchange type {kind!r:.80}")
        return factory

    def delete(self, name: str, *, if_unused: bool = False) -> bool:
        """Delete an exchange with its bindings; return False if it was not there.

        Args:
            name: Its name.
            if_unused: Whether it stays if anything is bound to it.

        Raises:
            ExchangeError: It is one that is always there, or is in use.
        """
        if not self.demand_deletable(name, if_unused=if_unused):
            return False
        if self._declared[name].durable and self._kept is not None:
            self._write(partial(self._kept.delete, name))
        self._follow(self._give_up(name))
        return True

    def demand_deletable(self, name: str, *, if_unused: bool = False) -> bool:
        """Check that an exchange may be deleted; return False if it is not there.

        Raises:
            ExchangeError: It is one that is always there, or is in use.
        """
        self._demand_not_default(name)
        if name.startswith(RESERVED):
            text = f"deletion of system {self._named(EXCHANGE, name)} not allowed"
            raise ExchangeError(ACCESS_REFUSED, text)
        if if_unused and name in self._declared and self._graph.bindings(name):
            text = f"{self._named(EXCHANGE, name)} in use"
            raise ExchangeError(PRECONDITION_FAILED, text)
        return name in self._declared

    def _give_up(self, name: str) -> list[tuple[str, Binding]]:
        """Give up an exchange with all of its bindings; return those that led to it."""
        del self._declared[name]
        for binding in self._graph.bindings(name):
            self._count_no_longer(name, binding)
        lost = self._graph.remove(name)
        self.private.remove_exchange(name)
        self._node.removed(name, self._take_out(lambda address: self._is_of(name, address)))
        self._shares.give_back(EXCHANGES, self._makers.pop(name, ()))
        return lost

    def _is_of(self, name: str, address: str) -> bool:
        """Return whether an address in use names an exchange."""
        if not address.startswith(self._prefix):
            return False
        try:
            return self._node.split(address)[0] == name
        except Refused:
            return False

    # -- bindings

    def bind(
        self,
        source: str,
        destination: Destination,
        key: bytes = b"",
        arguments: Mapping[str, object] | None = None,
        makers: Makers = (),
    ) -> bool:
        """Bind a queue or an exchange to an exchange; return False if it is bound so already.

        Args:
            source: The exchange that messages come from.
            destination: Where they go.
            key: The binding key.
            arguments: What the type of the exchange heeds.
            makers: For whom the binding is made.

        Raises:
            ExchangeError: An end is not there or is the default exchange, the type does not take
                key or arguments, or a maker has too many.
        """
        self._demand_ends(source, destination)
        binding = Binding(destination, key, dict(arguments or {}))
        if self._graph.find(source, binding) is not None:
            return False
        self._demand_share(BINDINGS, makers)
        self._bind(source, binding)
        self._binding_makers[source, binding] = makers
        self._shares.take(BINDINGS, makers)
        self._node.changed()
        self.private.bound(source, binding)
        if self._kept is not None and self._is_durable(source, destination):
            self._write(
                partial(self._kept.bind, source, binding),
                partial(self._unbind, source, binding),
            )
        return True

    def _bind(self, source: str, binding: Binding) -> None:
        """Put a binding into the graph.

        Raises:
            ExchangeError: The type of the exchange does not take it.
        """
        try:
            self._graph.bind(source, binding)
        except InvalidBinding as error:
            raise ExchangeError(PRECONDITION_FAILED, str(error)) from error

    def demand_bindable(self, source: str, binding: Binding, makers: Makers) -> bool:
        """Check that a binding may be made; return False if it is there.

        Raises:
            ExchangeError: As `bind` does.
        """
        self._demand_ends(source, binding.destination)
        if self._graph.find(source, binding) is not None:
            return False
        self._demand_share(BINDINGS, makers)
        try:
            self._matcher_of(self.demand(source)).bind(binding)
        except InvalidBinding as error:
            raise ExchangeError(PRECONDITION_FAILED, str(error)) from error
        return True

    def binding_like(self, source: str, binding: Binding) -> Binding | None:
        """Return the binding that is there and the same; None if there is none.

        Raises:
            ExchangeError: An end is the default exchange.
        """
        self._demand_not_default(source)
        if binding.destination.kind == EXCHANGE:
            self._demand_not_default(binding.destination.name)
        return None if source not in self._declared else self._graph.find(source, binding)

    def unbind(
        self,
        source: str,
        destination: Destination,
        key: bytes = b"",
        arguments: Mapping[str, object] | None = None,
    ) -> bool:
        """Remove a binding; return whether it was there.

        Raises:
            ExchangeError: An end is the default exchange.
        """
        wanted = Binding(destination, key, dict(arguments or {}))
        there = self.binding_like(source, wanted)
        if there is None:
            return False
        if self._kept is not None:
            self._write(partial(self._kept.unbind, [(source, there)]))
        self._unbind(source, there)
        self._follow([(source, there)])
        return True

    def _unbind(self, source: str, binding: Binding) -> None:
        self._graph.unbind(source, binding)
        self.private.unbound(source, binding)
        self._node.changed()

    def drop_queue(self, address: str) -> None:
        """Give up the bindings of a queue that has gone, and exchanges that go with them.

        Args:
            address: That of the node that has gone; it may be no queue's.
        """
        if self._is_closed or not address.startswith(QUEUE_PREFIX):
            return
        self._drop(Destination(QUEUE, address.removeprefix(QUEUE_PREFIX)))

    def drop_stream(self, address: str) -> None:
        """Give up the bindings of a stream that was deleted, unless they are a queue's.

        Args:
            address: That of the node that has gone; it may be no stream's.
        """
        name = address.removeprefix(STREAM_PREFIX)
        is_stream = address.startswith(STREAM_PREFIX) and not self._is_closed
        if is_stream and self._find_local(name) is None:
            self._drop(Destination(QUEUE, name))

    def note_replaced(self, address: str) -> None:
        """Take note that a stream has come or gone, or a queue in the place of one."""
        kind, _, name = address.partition("/")
        if kind == "stream" or self._stream_at(f"{STREAM_PREFIX}{name}") is not None:
            self._node.changed()
            self.on_replaced()

    def _drop(self, destination: Destination) -> None:
        bound = self._graph.bindings_to(destination)
        lost = [each for each in bound if each not in self._shared_bindings]
        for each in lost:
            self._graph.unbind(*each)
        self._node.changed()
        self._follow(lost)
        self.private.remove_queue(destination.name)

    def _follow(self, lost: list[tuple[str, Binding]]) -> None:
        """Take note of bindings that have gone, and let exchanges go that go with the last one."""
        for source, binding in lost:
            self._count_no_longer(source, binding)
        if self._kept is not None:
            self._forget(partial(self._kept.unbind, lost))
        for source in dict.fromkeys(source for source, _ in lost):
            self._end_unbound(source)

    def _end_unbound(self, source: str, *, is_own: bool = True) -> None:
        """Let an exchange go that deletes itself, if nothing is bound to it any more."""
        if not self.is_unused(source):
            return
        if source in self._shared:
            self.on_unused(source, is_own)
            return
        if self._kept is not None:
            self._forget(partial(self._kept.delete, source))
        self._follow(self._give_up(source))

    def is_unused(self, name: str) -> bool:
        """Return whether an exchange goes with its last binding, and has none."""
        exchange = self._declared.get(name)
        return exchange is not None and exchange.auto_delete and not self._graph.bindings(name)

    # -- what a cluster has

    def is_shared(self, name: str) -> bool:
        """Return whether an exchange is the cluster's, or is always there."""
        return name in self._shared or name in PREDECLARED

    def own(self) -> list[DeclaredExchange]:
        """List the exchanges that are this container's alone."""
        return [each for name, each in self._declared.items() if not self.is_shared(name)]

    def own_bindings(self) -> list[tuple[str, Binding]]:
        """List the bindings that no cluster has."""
        found = [(name, each) for name in self._declared for each in self._graph.bindings(name)]
        own = [each for each in found if each[1].destination.kind != CONTAINER]
        return [each for each in own if each not in self._shared_bindings]

    def follow_exchange(self, wanted: DeclaredExchange) -> None:
        """Have an exchange of the cluster, in the place of one that was this container's alone.

        Raises:
            ExchangeError: Its type is not there, or takes not its arguments.
        """
        there = self._declared.get(wanted.name)
        if there is not None and there != wanted:
            log.warning("exchange %r is as the cluster has it: it was %r", wanted.name, there)
            self._follow(self._give_up(wanted.name))
        if wanted.name not in self._declared:
            self._add(wanted, ())
        self._shared.add(wanted.name)

    def follow_no_exchange(self, name: str) -> None:
        """Have an exchange no longer that the cluster has not any more."""
        if name in self._shared:
            self._shared.discard(name)
            self._follow(self._give_up(name))

    def follow_binding(self, source: str, binding: Binding) -> None:
        """Have a binding of the cluster.

        Raises:
            ExchangeError: The type of the exchange does not take it.
        """
        if self._graph.find(source, binding) is None:
            self._bind(source, binding)
            self._node.changed()
        self._shared_bindings.add((source, binding))

    def follow_no_binding(self, source: str, binding: Binding) -> None:
        """Have a binding no longer that the cluster has not any more."""
        if (source, binding) in self._shared_bindings:
            self._shared_bindings.discard((source, binding))
            self._unbind(source, binding)
            self._count_no_longer(source, binding)

    def keep_no_shared(self) -> None:
        """Keep on disk no longer what was this container's, and is the cluster's now."""
        if self._kept is None:
            return
        kept = [each for each in self._kept.exchanges() if each.name in self._shared]
        bound = [each for each in self._kept.bindings() if each in self._shared_bindings]
        if bound:
            self._forget(partial(self._kept.unbind, bound))
        for each in kept:
            self._forget(partial(self._kept.delete, each.name))

    def is_shared_binding(self, source: str, binding: Binding) -> bool:
        """Return whether a binding is the cluster's."""
        return (source, binding) in self._shared_bindings

    def count_for(self, name: str, makers: Makers) -> None:
        """Have an exchange of the cluster count as made by those who asked for it here."""
        if name in self._makers:
            self._shares.give_back(EXCHANGES, self._makers[name])
            self._makers[name] = makers
            self._shares.take(EXCHANGES, makers)

    def count_binding_for(self, source: str, binding: Binding, makers: Makers) -> None:
        """Have a binding of the cluster count as made by those who asked for it here."""
        self._binding_makers[source, binding] = makers
        self._shares.take(BINDINGS, makers)

    def _forget(self, write: Callable[[], None]) -> None:
        """Keep something no longer that has gone: nobody waits to hear of a failure."""
        try:
            write()
        except OSError as error:
            log.error("an exchange or a binding that has gone is back after a restart: %s", error)

    def _write(self, write: Callable[[], None], undo: Callable[[], object] | None = None) -> None:
        """Keep a change on disk.

        Raises:
            ExchangeError: That cannot be done; `undo` has been called.
        """
        try:
            write()
        except OSError as error:
            if undo is not None:
                undo()
            text = f"cannot write the declaration to disk: {error.strerror}"
            raise ExchangeError(INTERNAL_ERROR, text) from error

    def _count_no_longer(self, source: str, binding: Binding) -> None:
        self.private.unbound(source, binding)
        makers = self._binding_makers.pop((source, binding), None)
        if makers is not None:
            self._shares.give_back(BINDINGS, makers)

    def _is_durable(self, source: str, destination: Destination) -> bool:
        if not self._declared[source].durable:
            return False
        if destination.kind == EXCHANGE:
            return self._declared[destination.name].durable
        queue = self._queue_at(_queue_address(destination.name))
        if queue is not None:
            return queue.is_on_disk
        stream = self._stream_at(f"{STREAM_PREFIX}{destination.name}")
        return stream is not None and stream.options.engine != IN_MEMORY

    def close(self) -> None:
        """Keep what is kept as it is: the container ends, and what goes now goes with it."""
        self._is_closed = True

    def delete_all(self) -> None:
        """Keep nothing any more: the virtual host is removed."""
        self._is_closed = True
        if self._kept is not None:
            self._kept.delete_all()

    # -- queues

    def _kind_of(self, name: str) -> str | None:
        exchange = self._declared.get(name)
        return None if exchange is None else exchange.kind

    def changed(self) -> None:
        """Have the queues of all messages found anew."""
        self._node.changed()

    def send_elsewhere_by(
        self,
        find: Callable[[Forward, Changes], AddressEntry | None],
        holder_of: Callable[[str], str | None],
    ) -> None:
        """Send messages to private queues of other containers from now on.

        Args:
            find: Returns where such messages come in; see `Exchanging.find_forward`.
            holder_of: Returns the other container that has a private queue of a name.
        """
        self._find_forward = self._node.find_forward = find
        self._holder_of = holder_of
        self._node.changed()

    def route(self, name: str, message: Routed) -> Route:
        """Find where a message that comes to an exchange goes."""
        return self._graph.route(name, message)

    def find_forward(self, forward: Forward, changes: Changes) -> AddressEntry | None:
        """Return where messages for another container's private queues come in."""
        return self._find_forward(forward, changes)

    def leads_to(self, name: str) -> bool:
        """Return whether there is a queue of a name, here or elsewhere."""
        return self._find_local(name) is not None or self._holder_of(name) is not None

    def find_immediate(self, name: str) -> AddressEntry | None:
        """Return where a message of a queue comes in that is delivered at once or not at all.

        None is returned where that cannot be. What is elsewhere is asked there.
        """
        here = self._find_local(name)
        if here is not None or name in self.private:
            return here if self.private.takes_now(name) else None
        holder = self._holder_of(name)
        if holder is None:
            return None
        route = ForwardRoute(queues=(name,), is_immediate=True)
        return self._find_forward(Forward(holder, route), self._no_keys)

    def holder_of(self, name: str) -> str | None:
        """Return the other container that has a private queue of a name; None where none has."""
        return self._holder_of(name)

    def _find_queue(self, name: str) -> AddressEntry | None:
        """Return where the messages of a queue come in, here or elsewhere; None for nowhere."""
        here = self._find_local(name)
        if here is not None or name in self.private:
            return here
        holder = self._holder_of(name)
        if holder is None:
            return None
        return self._find_forward(Forward(holder, ForwardRoute(queues=(name,))), self._no_keys)

    def _queue_at(self, address: str) -> Storing | None:
        node = self._node_at(address)
        return node if isinstance(node, Storing) else None

    def _stream_at(self, address: str) -> Streaming | None:
        node = self._node_at(address)
        return node if isinstance(node, Streaming) else None

    def _find_local(self, name: str) -> AddressEntry | None:
        """Return where the messages of a queue come in; None if it is not here."""
        address = _queue_address(name)
        node: Storing | Streaming | None = self._queue_at(address)
        if node is None:
            address = f"{STREAM_PREFIX}{name}"
            node = self._stream_at(address)
        return None if node is None else node.entry(address)

    # -- what is refused

    def demand_named(self, name: str) -> None:
        """See that an exchange is there that has a name.

        Raises:
            ExchangeError: It is not, or is the default one.
        """
        self._demand_not_default(name)
        self.demand(name)

    def _named(self, kind: str, name: str) -> str:
        return f"{kind} '{name:.255}' in vhost '{self._vhost or '/'}'"

    def _demand_not_default(self, name: str) -> None:
        if name == DEFAULT:
            text = "operation not permitted on the default exchange"
            raise ExchangeError(ACCESS_REFUSED, text)

    def _demand_name(self, name: str) -> None:
        if name.startswith(RESERVED):
            text = f"exchange name '{name:.255}' contains reserved prefix 'amq.*'"
            raise ExchangeError(ACCESS_REFUSED, text)
        problem = problem_of_name(name)
        if problem:
            text = f"invalid exchange name {name!r:.300}: expected {problem}"
            raise ExchangeError(PRECONDITION_FAILED, text)

    def _demand_ends(self, source: str, destination: Destination) -> None:
        """See that both ends of a new binding are there, and may be bound."""
        if destination.kind == EXCHANGE:
            self._demand_not_default(destination.name)
        self.demand_named(source)
        if destination.kind == EXCHANGE:
            self.demand(destination.name)
        if destination.kind == QUEUE and self._find_local(destination.name) is None:
            raise ExchangeError(NOT_FOUND, f"no {self._named(QUEUE, destination.name)}")

    def _demand_share(self, kind: str, makers: Makers) -> None:
        try:
            self._shares.demand(kind, makers)
        except Refused as refusal:
            raise ExchangeError(PRECONDITION_FAILED, refusal.description) from refusal

    def _demand_equal(self, there: DeclaredExchange, wanted: DeclaredExchange) -> None:
        """Refuse a declaration of something else than what is there, as RabbitMQ says it."""
        for key, name in (
            ("type", "kind"),
            ("durable", "durable"),
            ("auto_delete", "auto_delete"),
            ("internal", "internal"),
        ):
            received, current = getattr(wanted, name), getattr(there, name)
            if received != current:
                self._refuse_other(there.name, key, f"'{_word(received)}'", f"'{_word(current)}'")
        for key in COMPARED:
            received, current = wanted.arguments.get(key), there.arguments.get(key)
            if comparable(received) != comparable(current):
                is_typed = field_type(received) != field_type(current)
                told = [_valued(value, is_typed=is_typed) for value in (received, current)]
                self._refuse_other(there.name, key, *told)

    def _refuse_other(self, name: str, key: str, received: str, current: str) -> None:
        raise ExchangeError(
            PRECONDITION_FAILED,
            f"inequivalent arg '{key}' for {self._named(EXCHANGE, name)}: "
            f"received {received} but current is {current}",
        )


def _leave(_name: str, _is_own: bool) -> None:
    """Follow no cluster."""


def _tell_nobody() -> None:
    """There are no clients of AMQP 0-9-1 yet."""


def _none_named(_name: str) -> str | None:
    """There are no policies."""
    return None


def _held_by_nobody(_name: str) -> str | None:
    """There are no other containers yet."""
    return None


def _queue_address(name: str) -> str:
    return f"{QUEUE_PREFIX}{name}"


def _word(value: object) -> str:
    """Return a property as RabbitMQ shows it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _valued(value: object, *, is_typed: bool) -> str:
    """Return an argument as RabbitMQ shows it: with its type where that is what differs."""
    if value is None:
        return "none"
    text = f"'{value!s:.255}'"
    return f"the value {text} of type '{field_type(value)}'" if is_typed else text

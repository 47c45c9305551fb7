"""Exchanges, queues and bindings of one virtual host that a cluster has: declared and deleted here.

Theory of operation. What can be refused is refused by what is known here, in the words of RabbitMQ;
what is equal to what is there needs nobody. Anything else is a command: it is so here once the
command has come back in the order of all commands. Where another container was first, its
declaration is compared like any other, so that everywhere all but one of several that differ are
refused. An exchange that goes with its last binding is deleted by whoever removed that one.

Before all members can do this (feature level 5) a container has its own, as one without a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from cogwork.amqp091.tables import decode_table, encode_table
from cogwork.cluster.topology import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    Owner,
    SharedBinding,
    SharedExchange,
    Unbind,
)
from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.plugin.engine.errors import ConsensusError
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Binding, Destination
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.cluster.declarations import Outcome
    from cogwork.cluster.topology import Change, SharedQueue, Topology, TopologyCommand
    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.exchanges import Exchanges

__all__ = ("INTERNAL_ERROR", "VhostTopology", "binding_of", "exchange_of")

PRECONDITION_FAILED: Final = 406
INTERNAL_ERROR: Final = 541


class ClusterTopology(Protocol):
    """What a virtual host needs of the cluster's topology."""

    @property
    def state(self) -> Topology:
        """What is known here."""

    @property
    def is_active(self) -> bool:
        """Whether exchanges are the cluster's: all members can do that, and it is known here."""

    @property
    def has_replicas(self) -> bool:
        """Whether there are so many primaries that queues are replicated if nobody says more."""

    async def when_ready(self) -> None:
        """Wait until it is known what the cluster has."""

    async def catch_up(self) -> str:
        """Apply all that is declared by now; return why that cannot be, or nothing."""

    async def change(self, command: TopologyCommand) -> Outcome:
        """Have a command carried out; return once it is so at all linked members."""

    async def declare_records(self, vhost: str, address: str) -> None:
        """Declare a replicated queue that is here."""

    async def delete_records(self, vhost: str, address: str) -> bool:
        """Delete a replicated queue."""

    async def reach_members(self) -> None:
        """Wait until all linked members have applied what is declared now, but not for long."""

    def owner(self, home: str) -> Owner | None:
        """Return the present incarnation of a container; None where it is not known."""


class VhostTopology:
    """What the cluster has of one virtual host."""

    def __init__(self, vhost: str, exchanges: Exchanges, cluster: ClusterTopology) -> None:
        """Initialize it with the cluster's.

        Args:
            vhost: The virtual host's name.
            exchanges: Those that are here.
            cluster: Carries commands out.
        """
        self._vhost = vhost
        self._exchanges = exchanges
        self._cluster = cluster

    @property
    def has_replicas(self) -> bool:
        """Whether there are so many primaries that queues are replicated if nobody says more."""
        return self._cluster.has_replicas

    @property
    def is_active(self) -> bool:
        """Whether what is declared is the cluster's now."""
        return self._cluster.is_active

    async def is_shared(self) -> bool:
        """Return whether what is declared is the cluster's, once that is known.

        Raises:
            ExchangeError: It is not known.
        """
        try:
            await self._cluster.when_ready()
        except ConsensusError as error:
            raise _failure(error) from error
        return self._cluster.is_active

    async def catch_up(self) -> str:
        """Apply all that is declared by now; return why that cannot be, or nothing."""
        return await self._cluster.catch_up()

    async def _change(self, command: TopologyCommand) -> Outcome:
        """Have a command carried out.

        Raises:
            ExchangeError: It is refused, or it is not known whether it will be carried out.
        """
        try:
            outcome = await self._cluster.change(command)
        except (ConsensusError, ValueError) as error:
            raise _failure(error) from error
        if outcome.problem:
            raise ExchangeError(PRECONDITION_FAILED, outcome.problem)
        await self._delete_unused(outcome.changes)
        return outcome

    # -- exchanges

    async def declare_exchange(self, wanted: DeclaredExchange, makers: Makers = ()) -> bool:
        """Make an exchange; return False if it is there, and the same.

        Raises:
            ExchangeError: As `Exchanges.declare` does, or the cluster does not answer.
        """
        exchanges = self._exchanges
        if exchanges.has_equal(wanted) and exchanges.is_shared(wanted.name):
            return False
        exchanges.demand_new(wanted, makers)
        outcome = await self._change(self._command_of(wanted))
        if not outcome.has_changed:
            exchanges.has_equal(wanted)  # another one was first: a different one is refused
            return False
        exchanges.count_for(wanted.name, makers)
        return True

    def _command_of(self, exchange: DeclaredExchange) -> DeclareExchange:
        owner = None if exchange.durable else self._cluster.owner("")
        return DeclareExchange(
            self._vhost,
            exchange.name,
            exchange.kind,
            exchange.durable,
            exchange.auto_delete,
            exchange.internal,
            _octets(exchange.arguments),
            owner,
        )

    async def delete_exchange(self, name: str, *, if_unused: bool = False) -> bool:
        """Delete an exchange with its bindings; return False if it was not there.

        Raises:
            ExchangeError: As `Exchanges.delete` does, or the cluster does not answer.
        """
        if not self._exchanges.demand_deletable(name, if_unused=if_unused):
            return False
        outcome = await self._change(DeleteExchange(self._vhost, name, 0, if_unused))
        return outcome.has_changed

    async def _delete_unused(self, changes: Iterable[Change]) -> None:
        """Delete the exchanges that go with a binding that has gone."""
        gone = [each.entry for each in changes if not each.is_there]
        sources = dict.fromkeys(each.source for each in gone if isinstance(each, SharedBinding))
        for source in sources:
            await self.delete_unused(source)

    async def delete_unused(self, name: str) -> None:
        """Delete an exchange if it goes with its last binding, and has none."""
        there = self._cluster.state.exchange(self._vhost, name)
        if there is None or not self._exchanges.is_unused(name):
            return
        command = DeleteExchange(self._vhost, name, there.number, if_unused=True)
        try:
            outcome = await self._cluster.change(command)
        except (ConsensusError, ValueError) as error:
            raise _failure(error) from error
        await self._delete_unused(outcome.changes)

    # -- bindings

    async def bind(self, source: str, binding: Binding, makers: Makers = ()) -> bool:
        """Bind a queue or an exchange to an exchange; return False if it is bound so already.

        Raises:
            ExchangeError: As `Exchanges.bind` does, or the cluster does not answer.
        """
        exchanges = self._exchanges
        is_new = exchanges.demand_bindable(source, binding, makers)
        if not is_new and exchanges.is_shared_binding(source, binding):
            return False
        ends = (self._vhost, source, *binding.destination, self._number_of(binding.destination))
        outcome = await self._change(Bind(*ends, binding.key, _octets(binding.arguments)))
        if outcome.has_changed and is_new:
            exchanges.count_binding_for(source, binding, makers)
        return outcome.has_changed

    def _number_of(self, destination: Destination) -> int:
        state = self._cluster.state
        find = state.exchange if destination.kind == EXCHANGE else state.queue
        found = find(self._vhost, destination.name)
        return 0 if found is None else found.number

    async def unbind(self, source: str, binding: Binding) -> bool:
        """Remove a binding; return whether it was there.

        Raises:
            ExchangeError: An end is the default exchange, or the cluster does not answer.
        """
        there = self._exchanges.binding_like(source, binding)
        if there is None:
            return False
        if not self._exchanges.is_shared_binding(source, there):
            return self._exchanges.unbind(source, there.destination, there.key, there.arguments)
        ends = (self._vhost, source, *there.destination)
        outcome = await self._change(Unbind(*ends, there.key, _octets(there.arguments)))
        return outcome.has_changed

    async def unbind_all(self, name: str) -> None:
        """Remove the bindings to a stream that is about to be deleted.

        Raises:
            ExchangeError: The cluster does not answer.
        """
        for source, binding in self._exchanges.bindings_to(Destination(QUEUE, name)):
            await self.unbind(source, binding)

    # -- queues

    async def reach_members(self) -> None:
        """Wait until all linked members have applied what is declared now, but not for long."""
        await self._cluster.reach_members()

    def queue(self, name: str) -> SharedQueue | None:
        """Return what the cluster has of a queue; None where it has none of that name."""
        return self._cluster.state.queue(self._vhost, name) if self.is_active else None

    async def declare_queue(
        self,
        name: str,
        *,
        durable: bool,
        auto_delete: bool,
        arguments: Mapping[str, object],
        home: str,
    ) -> bool:
        """Make a queue; return False if there is one of that name.

        Args:
            name: Its name.
            durable: Whether it outlives its container.
            auto_delete: Whether it goes with its last consumer.
            arguments: As they were given.
            home: The container that has its messages; empty where it is replicated.

        Raises:
            ExchangeError: It cannot be, or the cluster does not answer.
        """
        owner = None if durable else self._cluster.owner(home)
        if not durable and owner is None:
            text = f"home node '{home:.255}' of queue '{name:.255}' in vhost "
            raise ExchangeError(404, f"{text}'{self._vhost or '/'}' is down or inaccessible")
        command = DeclareQueue(
            self._vhost, name, durable, auto_delete, _octets(arguments), home, owner
        )
        return (await self._change(command)).has_changed

    async def declare_records(self, address: str) -> None:
        """Declare a replicated queue's records.

        Raises:
            ExchangeError: They are declared otherwise, or the cluster does not answer.
        """
        try:
            await self._cluster.declare_records(self._vhost, address)
        except (ConsensusError, ValueError) as error:
            raise _failure(error) from error

    async def delete_queue(self, name: str) -> bool:
        """Delete a queue; return False if the cluster has none of that name.

        Raises:
            ExchangeError: The cluster does not answer.
        """
        there = self.queue(name)
        if there is None:
            return False
        if there.home:
            outcome = await self._change(DeleteQueue(self._vhost, name, there.number))
            return outcome.has_changed
        bound = self._exchanges.bindings_to(Destination(QUEUE, name))
        try:
            is_deleted = await self._cluster.delete_records(self._vhost, f"queue/{name}")
        except (ConsensusError, ValueError) as error:
            raise _failure(error) from error
        for source in dict.fromkeys(source for source, _ in bound):
            await self.delete_unused(source)
        return is_deleted


def exchange_of(entry: SharedExchange) -> DeclaredExchange:
    """Return an exchange of the cluster as it was declared."""
    return DeclaredExchange(
        entry.name,
        entry.exchange_type,
        entry.durable,
        entry.auto_delete,
        entry.internal,
        decode_table(entry.arguments),
    )


def binding_of(entry: SharedBinding) -> Binding:
    """Return a binding of the cluster as the graph has it."""
    destination = Destination(entry.kind, entry.destination)
    return Binding(destination, entry.binding_key, decode_table(entry.arguments))


def _octets(arguments: Mapping[str, object]) -> bytes:
    """Return arguments as a field table: equal ones are the same octets."""
    return encode_table(dict(sorted(arguments.items())))


def _failure(error: ConsensusError | ValueError) -> ExchangeError:
    if isinstance(error, ValueError):
        return ExchangeError(PRECONDITION_FAILED, str(error))
    return ExchangeError(INTERNAL_ERROR, f"the cluster does not answer: {error}")

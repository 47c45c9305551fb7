"""The virtual hosts of a container, as its configuration has them, and those that it had before.

One that a new configuration has no more lives on for the clients that are there, and goes with the
last of them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from cogwork.config.addressing import schema_engine_of, table_of, told_streams
from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.plugin.capabilities import Removable
from cogwork.router.exchanges.addresses import destination_in
from cogwork.router.exchanges.binding import QUEUE, Binding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cogwork.config.settings import Configuration, Vhost
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.router.addresses import AddressTable

__all__ = ("Plan", "VirtualHosts", "plans_of")

KEPT_SHOWN_MAX = 10
"""Addresses that stay what they were when the configuration is read again: so many are named."""

log = logging.getLogger("cogwork")


class Plan(NamedTuple):
    """What a virtual host is to be.

    Attributes:
        tables: What is configured.
        table: Its address rules, checked.
    """

    tables: Configuration | Vhost
    table: AddressTable


def plans_of(configuration: Configuration) -> dict[str, Plan]:
    """Return what each virtual host is to be, the default one first, whose name is empty.

    Raises:
        AddressingError: A rule cannot be used.
    """
    engine = schema_engine_of(configuration)
    wanted: dict[str, Configuration | Vhost] = {
        "": configuration,
        **{vhost.name: vhost for vhost in configuration.vhosts},
    }
    return {name: Plan(tables, table_of(tables, engine)) for name, tables in wanted.items()}


class VirtualHosts:
    """Owned by the container.

    Attributes:
        by_name: Those that are configured; others see them come and go.
    """

    def __init__(self, make: Callable[[str, Plan], VirtualHost]) -> None:
        """Start with none yet.

        Args:
            make: Makes one.
        """
        self.by_name: dict[str, VirtualHost] = {}
        self._make = make
        self._retired: list[VirtualHost] = []

    def __iter__(self) -> Iterator[VirtualHost]:
        """Go over all that live, configured or not."""
        return iter((*self.by_name.values(), *self._retired))

    def take(self, plans: Mapping[str, Plan]) -> list[str]:
        """Make those that are new, changes those that stay, and lets go of the others.

        Returns:
            The names of the new ones.
        """
        fresh = [name for name in plans if name not in self.by_name]
        for name, plan in plans.items():
            if name in fresh:
                self.by_name[name] = self._make(name, plan)
            else:
                _change(self.by_name[name], plan)
            self.by_name[name].policies.take(plan.tables.policies)
            for address in _declared(plan.tables):
                self.by_name[name].entry_of(address)
            self.by_name[name].exchanges.configure(*_exchanges_of(plan.tables))
        for name in self.by_name.keys() - plans.keys():
            self._retired.append(self.by_name.pop(name))
        return fresh

    def end(self, name: str) -> None:
        """Give one up at once, with its queues and what they hold; it has no clients any more."""
        vhost = self.by_name.pop(name)
        vhost.exchanges.delete_all()
        for key, node in list(vhost.nodes.items()):
            if isinstance(node, Removable):
                node.end_links()
                node.delete()
                vhost.remove_node(key)
        vhost.close()

    def start_schemas(self) -> None:
        """Have those that hold publishers to schemas begin to read them."""
        for vhost in self.by_name.values():
            if vhost.schemas is not None:
                vhost.schemas.start()

    def sweep(self, now_s: float, clients: Iterable[ClientContext]) -> None:
        """Give up addresses that nobody uses, and unconfigured virtual hosts without clients.

        Args:
            now_s: The time.
            clients: Those that are connected.
        """
        for vhost in self.by_name.values():
            vhost.forget_idle(now_s)
        if self._retired:
            used = {client.vhost for client in clients}
            for vhost in [each for each in self._retired if each not in used]:
                vhost.close()
                self._retired.remove(vhost)

    def give_back(self) -> None:
        """Have every stream return what waits to be appended."""
        for vhost in self:
            vhost.give_back()

    async def close_streams(self) -> None:
        """Let go of every stream, and of what follows one."""
        for vhost in self:
            if vhost.schemas is not None:
                await vhost.schemas.closed()
            vhost.close_streams()


def _change(vhost: VirtualHost, plan: Plan) -> None:
    kept = vhost.take_table(plan.table)
    if kept:
        log.warning(
            "in use, keeping their old settings until unused or until a restart: %s%s",
            ", ".join(kept[:KEPT_SHOWN_MAX]),
            f" and {len(kept) - KEPT_SHOWN_MAX} more" if len(kept) > KEPT_SHOWN_MAX else "",
        )
    if vhost.schemas is not None:
        vhost.schemas.take_rules(plan.tables.schemas)


def _exchanges_of(
    tables: Configuration | Vhost,
) -> tuple[list[DeclaredExchange], list[tuple[str, Binding]]]:
    """List the exchanges and bindings that are there from the start."""
    exchanges = [
        DeclaredExchange(
            each.name, each.type, each.durable, each.auto_delete, each.internal, each.arguments
        )
        for each in tables.exchanges
    ]
    bindings = [
        (each.source, Binding(destination, each.key.encode(), each.arguments))
        for each in tables.bindings
        if (destination := destination_in(each.destination)) is not None
    ]
    return exchanges, bindings


def _declared(tables: Configuration | Vhost) -> list[str]:
    """List the addresses of queues and streams that are there from the start."""
    queues = [queue.address for queue in tables.queues]
    bound = [
        each.destination
        for each in tables.bindings
        if (found := destination_in(each.destination)) is not None and found.kind == QUEUE
    ]
    streams = [stream.address for stream in tables.streams]
    return [*queues, *bound, *streams, *told_streams(tables)]

"""Exchanges and bindings, as management sees them: by addresses, with plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.errors import EncodeError
from cogwork.amqp091.tables import encode_table
from cogwork.container.connections.requester import ClientRequester
from cogwork.container.management.inventory import Entities
from cogwork.plugin.management import (
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    ManagementError,
)
from cogwork.router.exchanges.addresses import name_in
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Destination
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.declared_exchange import DeclaredExchange
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.management import ExchangeOptions, Requester, Row
    from cogwork.router.exchanges.binding import Binding

__all__ = ("ManagedExchanges", "binding_rows", "exchange_rows")

EXCHANGE_ATTRIBUTES = (
    *("name", "address", "vhost", "exchange", "type", "durable", "auto_delete", "internal"),
    *("arguments", "bindings", "delivered", "unroutable"),
)
BINDING_ATTRIBUTES = ("name", "vhost", "source", "destination", "key", "arguments")

STATUS = {403: FORBIDDEN, 404: NOT_FOUND, 406: CONFLICT, 503: BAD_REQUEST, 541: 500}
"""What a reply code of AMQP 0-9-1 is in a reply of `$management`."""


class ManagedExchanges:
    """What can be done to the exchanges of one virtual host."""

    def __init__(self, vhost: VirtualHost) -> None:
        """Initialize it with a virtual host.

        Args:
            vhost: Whose exchanges they are.
        """
        self._vhost = vhost

    def declare(self, address: str, options: ExchangeOptions, requester: Requester) -> bool:
        """Make an exchange; return False if it was there, and the same."""
        name = _exchange_in(address)
        return _done(
            lambda: self._vhost.exchanges.declare(
                name,
                options.type,
                durable=options.durable,
                auto_delete=options.auto_delete,
                internal=options.internal,
                arguments=_plain(options.arguments),
                makers=_makers(requester),
            )
        )

    def delete(self, address: str, *, if_unused: bool) -> bool:
        """Delete an exchange; return False if it was not there."""
        name = _exchange_in(address)
        return _done(lambda: self._vhost.exchanges.delete(name, if_unused=if_unused))

    def bind(
        self,
        source: str,
        destination: str,
        key: str,
        arguments: Mapping[str, object],
        requester: Requester,
    ) -> bool:
        """Bind a queue or an exchange; return False if it was bound so already."""
        ends = (_exchange_in(source), _destination_in(destination), _octets(key), _plain(arguments))
        return _done(lambda: self._vhost.exchanges.bind(*ends, makers=_makers(requester)))

    def unbind(
        self, source: str, destination: str, key: str, arguments: Mapping[str, object]
    ) -> bool:
        """Remove a binding; return whether it was there."""
        ends = (_exchange_in(source), _destination_in(destination), _octets(key), _plain(arguments))
        return _done(lambda: self._vhost.exchanges.unbind(*ends))


def exchange_rows(vhost: VirtualHost) -> Entities[DeclaredExchange]:
    """Make the collection of a virtual host's exchanges."""
    exchanges = vhost.exchanges

    def get(address: str) -> DeclaredExchange | None:
        return exchanges.get(_exchange_in(address))

    def members() -> list[DeclaredExchange]:
        return sorted(exchanges, key=lambda each: each.name)

    return Entities(
        EXCHANGE_ATTRIBUTES,
        members,
        lambda it: exchanges.address(it.name),
        lambda it: _exchange_row(vhost, it),
        get,
    )


def _exchange_row(vhost: VirtualHost, exchange: DeclaredExchange) -> Row:
    address = vhost.exchanges.address(exchange.name)
    return {
        "name": address,
        "address": address,
        "vhost": vhost.name,
        "exchange": exchange.name,
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": dict(exchange.arguments),
        "bindings": len(vhost.exchanges.bindings(exchange.name)),
        **vhost.exchanges.figures(exchange.name),
    }


def binding_rows(vhost: VirtualHost) -> Entities[tuple[str, Binding]]:
    """Make the collection of a virtual host's bindings; one is known by its source's address."""
    exchanges = vhost.exchanges

    def members() -> Iterator[tuple[str, Binding]]:
        return (
            (exchange.name, binding)
            for exchange in sorted(exchanges, key=lambda each: each.name)
            for binding in exchanges.bindings(exchange.name)
        )

    def get(name: str) -> tuple[str, Binding] | None:
        return next((each for each in members() if exchanges.address(each[0]) == name), None)

    return Entities(
        BINDING_ATTRIBUTES,
        members,
        lambda it: exchanges.address(it[0]),
        lambda it: _binding_row(vhost, *it),
        get,
    )


def _binding_row(vhost: VirtualHost, source: str, binding: Binding) -> Row:
    kind, name = binding.destination
    is_queue = kind == QUEUE
    return {
        "name": vhost.exchanges.address(source),
        "vhost": vhost.name,
        "source": vhost.exchanges.address(source),
        "destination": f"queue/{name}" if is_queue else vhost.exchanges.address(name),
        "key": binding.key.decode(errors="backslashreplace"),
        "arguments": dict(binding.arguments),
    }


def _done(act: Callable[[], bool]) -> bool:
    """Do something to exchanges.

    Raises:
        ManagementError: It is refused.
    """
    try:
        return act()
    except ExchangeError as error:
        raise ManagementError(STATUS[error.code], error.text) from error


def _exchange_in(address: str) -> str:
    prefix, _, quoted = address.removeprefix("/").partition("/")
    if prefix != EXCHANGE or not quoted:
        raise ManagementError(BAD_REQUEST, f"{address!r:.200} is no exchange: exchange/NAME is")
    return name_in(quoted)


def _destination_in(address: str) -> Destination:
    kind, _, name = address.removeprefix("/").partition("/")
    if kind == QUEUE and name:
        return Destination(QUEUE, name)
    if kind == EXCHANGE and name:
        return Destination(EXCHANGE, name_in(name))
    text = f"{address!r:.200} cannot be bound: expected queue/NAME or exchange/NAME"
    raise ManagementError(BAD_REQUEST, text)


def _octets(key: str) -> bytes:
    return key.encode(errors="surrogateescape")


def _plain(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return arguments as the types of field tables.

    Raises:
        ManagementError: A value has no such type.
    """
    plain = {str(key): _plain_value(value) for key, value in arguments.items()}
    try:
        encode_table(plain)
    except EncodeError as error:
        raise ManagementError(BAD_REQUEST, f"an argument cannot be used: {error}") from error
    return plain


def _plain_value(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    if isinstance(value, bool | bytes):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _makers(requester: Requester) -> Makers:
    """Tell for whom something is made that is asked for."""
    return requester.client.makers if isinstance(requester, ClientRequester) else ()

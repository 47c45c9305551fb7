"""Exchanges and bindings, as management sees them: by addresses, with plain values.

In a cluster all containers have the same ones: then what is done to them is awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.errors import EncodeError
from cogwork.amqp091.tables import encode_table
from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.plugin.management import (
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    ManagementError,
)
from cogwork.router.exchanges.addresses import destination_in, name_in
from cogwork.router.exchanges.binding import EXCHANGE, Binding
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.shared import VhostTopology
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.management import ExchangeOptions, Requester
    from cogwork.router.exchanges.binding import Destination

__all__ = ("ManagedExchanges",)

UNAVAILABLE = 503

STATUS = {403: FORBIDDEN, 404: NOT_FOUND, 406: CONFLICT, 503: BAD_REQUEST, 541: UNAVAILABLE}
"""What a reply code of AMQP 0-9-1 is in a reply of `$management`."""


class ManagedExchanges:
    """What can be done to the exchanges of one virtual host."""

    def __init__(self, vhost: VirtualHost, makers_of: Callable[[Requester | None], Makers]) -> None:
        """Initialize it with a virtual host.

        Args:
            vhost: Where the exchanges are.
            makers_of: Tells for whom something is made that is asked for.
        """
        self._vhost = vhost
        self._exchanges = vhost.exchanges
        self._makers_of = makers_of

    def declare(
        self, address: str, options: ExchangeOptions, requester: Requester
    ) -> bool | Awaitable[bool]:
        """Make an exchange; return False if it was there, and the same."""
        wanted = DeclaredExchange(
            _exchange_in(address),
            options.type,
            options.durable,
            options.auto_delete,
            options.internal,
            _plain(options.arguments),
        )
        makers = self._makers_of(requester)
        return self._done(
            lambda: self._exchanges.declare_exchange(wanted, makers),
            lambda topology: topology.declare_exchange(wanted, makers),
        )

    def delete(self, address: str, *, if_unused: bool) -> bool | Awaitable[bool]:
        """Delete an exchange; return False if it was not there."""
        name = _exchange_in(address)
        return self._done(
            lambda: self._exchanges.delete(name, if_unused=if_unused),
            lambda topology: topology.delete_exchange(name, if_unused=if_unused),
        )

    def bind(
        self,
        source: str,
        destination: str,
        key: str,
        arguments: Mapping[str, object],
        requester: Requester,
    ) -> bool | Awaitable[bool]:
        """Bind a queue or an exchange; return False if it was bound so already."""
        name, binding = _exchange_in(source), _binding(destination, key, arguments)
        makers = self._makers_of(requester)
        parts = (binding.destination, binding.key, binding.arguments)
        return self._done(
            lambda: self._exchanges.bind(name, *parts, makers=makers),
            lambda topology: topology.bind(name, binding, makers),
        )

    def unbind(
        self, source: str, destination: str, key: str, arguments: Mapping[str, object]
    ) -> bool | Awaitable[bool]:
        """Remove a binding; return whether it was there."""
        name, binding = _exchange_in(source), _binding(destination, key, arguments)
        parts = (binding.destination, binding.key, binding.arguments)
        return self._done(
            lambda: self._exchanges.unbind(name, *parts),
            lambda topology: topology.unbind(name, binding),
        )

    def _done(
        self,
        here: Callable[[], bool],
        everywhere: Callable[[VhostTopology], Awaitable[bool]],
    ) -> bool | Awaitable[bool]:
        """Do something to the exchanges of this container, or to those of the cluster."""
        if self._vhost.topology is None:
            return _done(here)
        return _done_everywhere(self._vhost.topology, here, everywhere)


async def _done_everywhere(
    topology: VhostTopology,
    here: Callable[[], bool],
    everywhere: Callable[[VhostTopology], Awaitable[bool]],
) -> bool:
    """Do something to the exchanges of a cluster, or here where it cannot have any yet.

    Raises:
        ManagementError: It is refused.
    """
    try:
        if not await topology.is_shared():
            return here()
        await topology.catch_up()
        return await everywhere(topology)
    except ExchangeError as error:
        raise ManagementError(STATUS[error.code], error.text) from error


def _binding(destination: str, key: str, arguments: Mapping[str, object]) -> Binding:
    return Binding(_destination_in(destination), _octets(key), _plain(arguments))


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
    destination = destination_in(address)
    if destination is None:
        text = f"{address!r:.200} cannot be bound: expected queue/NAME or exchange/NAME"
        raise ManagementError(BAD_REQUEST, text)
    return destination


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

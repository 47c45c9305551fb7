"""Exchanges and bindings, as management sees them: by addresses, with plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091.errors import EncodeError
from cogwork.amqp091.tables import encode_table
from cogwork.plugin.management import (
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    ManagementError,
)
from cogwork.router.exchanges.addresses import destination_in, name_in
from cogwork.router.exchanges.binding import EXCHANGE
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.exchanges import Exchanges
    from cogwork.plugin.management import ExchangeOptions, Requester
    from cogwork.router.exchanges.binding import Destination

__all__ = ("ManagedExchanges",)

STATUS = {403: FORBIDDEN, 404: NOT_FOUND, 406: CONFLICT, 503: BAD_REQUEST, 541: 500}
"""What a reply code of AMQP 0-9-1 is in a reply of `$management`."""


class ManagedExchanges:
    """What can be done to the exchanges of one virtual host."""

    def __init__(
        self, exchanges: Exchanges, makers_of: Callable[[Requester | None], Makers]
    ) -> None:
        """Initialize it with exchanges.

        Args:
            exchanges: Those of the virtual host.
            makers_of: Tells for whom something is made that is asked for.
        """
        self._exchanges = exchanges
        self._makers_of = makers_of

    def declare(self, address: str, options: ExchangeOptions, requester: Requester) -> bool:
        """Make an exchange; return False if it was there, and the same."""
        name = _exchange_in(address)
        return _done(
            lambda: self._exchanges.declare(
                name,
                options.type,
                durable=options.durable,
                auto_delete=options.auto_delete,
                internal=options.internal,
                arguments=_plain(options.arguments),
                makers=self._makers_of(requester),
            )
        )

    def delete(self, address: str, *, if_unused: bool) -> bool:
        """Delete an exchange; return False if it was not there."""
        name = _exchange_in(address)
        return _done(lambda: self._exchanges.delete(name, if_unused=if_unused))

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
        return _done(lambda: self._exchanges.bind(*ends, makers=self._makers_of(requester)))

    def unbind(
        self, source: str, destination: str, key: str, arguments: Mapping[str, object]
    ) -> bool:
        """Remove a binding; return whether it was there."""
        ends = (_exchange_in(source), _destination_in(destination), _octets(key), _plain(arguments))
        return _done(lambda: self._exchanges.unbind(*ends))


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

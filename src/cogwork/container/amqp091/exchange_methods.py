"""Methods on exchanges (AMQP 0-9-1 §1.6, and RabbitMQ's bindings between them)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.router.exchanges.binding import Destination
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.channel import Channel, Work

__all__ = ("HANDLERS", "exchange_errors")


@contextmanager
def exchange_errors() -> Iterator[None]:
    """Tell what exchanges refuse by its reply code.

    Raises:
        ProtocolError: Something was refused.
    """
    try:
        yield
    except ExchangeError as error:
        raise ProtocolError(ReplyCode(error.code), error.text) from None


def declare(channel: Channel, method: m.ExchangeDeclare, _content: Content | None) -> None:
    """Make an exchange, or look whether it is there."""
    exchanges = channel.vhost.exchanges
    with exchange_errors():
        if method.passive and not method.exchange:
            text = "operation not permitted on the default exchange"
            raise ProtocolError(ReplyCode.ACCESS_REFUSED, text)
        if method.passive:
            exchanges.demand_named(method.exchange)
        else:
            channel.demand("manage", exchanges.address(method.exchange))
            _demand_alternate(channel, method)
            exchanges.declare(
                method.exchange,
                method.type,
                durable=method.durable,
                auto_delete=method.auto_delete,
                internal=method.internal,
                arguments=method.arguments,
                makers=channel.client.makers,
            )
    if not method.nowait:
        channel.reply(m.ExchangeDeclareOk())


def _demand_alternate(channel: Channel, method: m.ExchangeDeclare) -> None:
    """Check that who sends what nobody takes to another exchange may do so there."""
    alternate = method.arguments.get("alternate-exchange")
    if isinstance(alternate, str):
        exchanges = channel.vhost.exchanges
        channel.demand("receive", exchanges.address(method.exchange))
        channel.demand("send", exchanges.address(alternate))


def delete(channel: Channel, method: m.ExchangeDelete, _content: Content | None) -> None:
    """Give an exchange up; one that is not there is fine."""
    exchanges = channel.vhost.exchanges
    with exchange_errors():
        channel.demand("manage", exchanges.address(method.exchange))
        exchanges.delete(method.exchange, if_unused=method.if_unused)
    if not method.nowait:
        channel.reply(m.ExchangeDeleteOk())


def bind(channel: Channel, method: m.ExchangeBind, _content: Content | None) -> None:
    """Bind one exchange to another."""
    _demand_both(channel, method)
    with exchange_errors():
        channel.vhost.exchanges.bind(
            method.source,
            Destination("exchange", method.destination),
            octets_of(method.routing_key),
            method.arguments,
            makers=channel.client.makers,
        )
    if not method.nowait:
        channel.reply(m.ExchangeBindOk())


def unbind(channel: Channel, method: m.ExchangeUnbind, _content: Content | None) -> None:
    """Undo a binding; one that is not there is fine."""
    _demand_both(channel, method)
    with exchange_errors():
        channel.vhost.exchanges.unbind(
            method.source,
            Destination("exchange", method.destination),
            octets_of(method.routing_key),
            method.arguments,
        )
    if not method.nowait:
        channel.reply(m.ExchangeUnbindOk())


def _demand_both(channel: Channel, method: m.ExchangeBind | m.ExchangeUnbind) -> None:
    exchanges = channel.vhost.exchanges
    channel.demand("send", exchanges.address(method.destination))
    channel.demand("receive", exchanges.address(method.source))


HANDLERS: dict[type[Method], Callable[..., Work | None]] = {
    m.ExchangeDeclare: declare,
    m.ExchangeDelete: delete,
    m.ExchangeBind: bind,
    m.ExchangeUnbind: unbind,
}

"""Methods on exchanges (AMQP 0-9-1 §1.6, and RabbitMQ's bindings between them)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.container.vhost.declared_exchange import DeclaredExchange
from cogwork.router.exchanges.binding import Binding, Destination
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.declarer import Declarer, Work
    from cogwork.container.mesh.reach import Reach
    from cogwork.container.vhost.shared import VhostTopology

__all__ = ("HANDLERS", "bind_to", "exchange_errors", "unbind_from")


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


def declare(channel: Declarer, method: m.ExchangeDeclare, _content: Content | None) -> Work | None:
    """Make an exchange, or look whether it is there."""
    exchanges = channel.vhost.exchanges
    with exchange_errors():
        if method.passive and not method.exchange:
            text = "operation not permitted on the default exchange"
            raise ProtocolError(ReplyCode.ACCESS_REFUSED, text)
        if method.passive:
            exchanges.demand_named(method.exchange)
            is_there = True
        else:
            channel.demand("manage", exchanges.address(method.exchange))
            _demand_alternate(channel, method)
            is_there = exchanges.has_equal(_wanted(method))
    if channel.vhost.topology is not None and not is_there:
        return _declare_shared(channel, method, channel.vhost.topology)
    if not method.passive:
        _declare_here(channel, method)
    _answer(channel, method, m.ExchangeDeclareOk())
    return None


def _wanted(method: m.ExchangeDeclare) -> DeclaredExchange:
    return DeclaredExchange(
        method.exchange,
        method.type,
        method.durable,
        method.auto_delete,
        method.internal,
        method.arguments,
    )


def _declare_here(channel: Declarer, method: m.ExchangeDeclare) -> None:
    with exchange_errors():
        channel.vhost.exchanges.declare(
            method.exchange,
            method.type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments,
            makers=channel.client.makers,
        )


async def _declare_shared(
    channel: Declarer, method: m.ExchangeDeclare, topology: VhostTopology
) -> None:
    """Make an exchange for the whole cluster, where all of it can have one."""
    with exchange_errors():
        if await topology.is_shared():
            await topology.declare_exchange(_wanted(method), channel.client.makers)
        else:
            _declare_here(channel, method)
    _answer(channel, method, m.ExchangeDeclareOk())


def _answer(
    channel: Declarer,
    method: m.ExchangeDeclare | m.ExchangeDelete | m.ExchangeBind | m.ExchangeUnbind,
    answer: Method,
) -> None:
    if not method.nowait:
        channel.reply(answer)


def _demand_alternate(channel: Declarer, method: m.ExchangeDeclare) -> None:
    """Check that who sends what nobody takes to another exchange may do so there."""
    alternate = method.arguments.get("alternate-exchange")
    if isinstance(alternate, str):
        exchanges = channel.vhost.exchanges
        channel.demand("receive", exchanges.address(method.exchange))
        channel.demand("send", exchanges.address(alternate))


def delete(channel: Declarer, method: m.ExchangeDelete, _content: Content | None) -> Work | None:
    """Give an exchange up; one that is not there is fine."""
    exchanges = channel.vhost.exchanges
    channel.demand("manage", exchanges.address(method.exchange))
    if channel.vhost.topology is not None:
        return _delete_shared(channel, method, channel.vhost.topology)
    with exchange_errors():
        exchanges.delete(method.exchange, if_unused=method.if_unused)
    _answer(channel, method, m.ExchangeDeleteOk())
    return None


async def _delete_shared(
    channel: Declarer, method: m.ExchangeDelete, topology: VhostTopology
) -> None:
    exchanges = channel.vhost.exchanges
    with exchange_errors():
        if await topology.is_shared():
            if exchanges.get(method.exchange) is None:
                await topology.catch_up()
            await topology.delete_exchange(method.exchange, if_unused=method.if_unused)
        else:
            exchanges.delete(method.exchange, if_unused=method.if_unused)
    _answer(channel, method, m.ExchangeDeleteOk())


def bind(channel: Declarer, method: m.ExchangeBind, _content: Content | None) -> Work | None:
    """Bind one exchange to another."""
    _demand_both(channel, method)
    binding = Binding(
        Destination("exchange", method.destination),
        octets_of(method.routing_key),
        method.arguments,
    )
    ok = None if method.nowait else m.ExchangeBindOk()
    return bind_to(channel, method.source, binding, ok)


def unbind(channel: Declarer, method: m.ExchangeUnbind, _content: Content | None) -> Work | None:
    """Undo a binding; one that is not there is fine."""
    _demand_both(channel, method)
    binding = Binding(
        Destination("exchange", method.destination),
        octets_of(method.routing_key),
        method.arguments,
    )
    ok = None if method.nowait else m.ExchangeUnbindOk()
    return unbind_from(channel, method.source, binding, ok)


def bind_to(
    channel: Declarer, source: str, binding: Binding, ok: Method | None, *, is_private: bool = False
) -> Work | None:
    """Make a binding, here or for the whole cluster, and answer.

    Args:
        channel: Whose client wants it.
        source: The exchange that messages come from.
        binding: The binding.
        ok: The answer; None for none.
        is_private: Whether it leads to a queue that is this container's alone.

    Raises:
        ProtocolError: It cannot be made.
    """
    exchanges, topology = channel.vhost.exchanges, channel.vhost.topology
    if topology is not None and not is_private:
        with exchange_errors():
            is_new = exchanges.demand_bindable(source, binding, channel.client.makers)
        if is_new:
            return _bind_shared(channel, source, binding, ok, topology)
    else:
        _bind_here(channel, source, binding)
        reach = channel.vhost.reach
        if is_private and ok is not None and reach and not reach.told_interests.are_known:
            return _answer_told(channel, ok, reach)
    if ok is not None:
        channel.reply(ok)
    return None


async def _answer_told(channel: Declarer, ok: Method, reach: Reach) -> None:
    """Answer once other containers know of a private binding: else a reply could overtake it."""
    await reach.told_interests.when_known()
    channel.reply(ok)


def _bind_here(channel: Declarer, source: str, binding: Binding) -> None:
    with exchange_errors():
        channel.vhost.exchanges.bind(
            source,
            binding.destination,
            binding.key,
            binding.arguments,
            makers=channel.client.makers,
        )


async def _bind_shared(
    channel: Declarer, source: str, binding: Binding, ok: Method | None, topology: VhostTopology
) -> None:
    with exchange_errors():
        if await topology.is_shared():
            await topology.bind(source, binding, channel.client.makers)
        else:
            _bind_here(channel, source, binding)
    if ok is not None:
        channel.reply(ok)


def unbind_from(
    channel: Declarer,
    source: str,
    binding: Binding,
    ok: Method | None,
    *,
    is_private: bool = False,
) -> Work | None:
    """Undo a binding, here or for the whole cluster, and answer; see `bind_to`."""
    topology = channel.vhost.topology
    if topology is not None and not is_private:
        return _unbind_shared(channel, source, binding, ok, topology)
    _unbind_here(channel, source, binding)
    if ok is not None:
        channel.reply(ok)
    return None


def _unbind_here(channel: Declarer, source: str, binding: Binding) -> None:
    with exchange_errors():
        channel.vhost.exchanges.unbind(source, binding.destination, binding.key, binding.arguments)


async def _unbind_shared(
    channel: Declarer, source: str, binding: Binding, ok: Method | None, topology: VhostTopology
) -> None:
    with exchange_errors():
        if await topology.is_shared():
            if channel.vhost.exchanges.binding_like(source, binding) is None:
                await topology.catch_up()
            await topology.unbind(source, binding)
        else:
            _unbind_here(channel, source, binding)
    if ok is not None:
        channel.reply(ok)


def _demand_both(channel: Declarer, method: m.ExchangeBind | m.ExchangeUnbind) -> None:
    exchanges = channel.vhost.exchanges
    channel.demand("send", exchanges.address(method.destination))
    channel.demand("receive", exchanges.address(method.source))


HANDLERS: dict[type[Method], Callable[..., Work | None]] = {
    m.ExchangeDeclare: declare,
    m.ExchangeDelete: delete,
    m.ExchangeBind: bind,
    m.ExchangeUnbind: unbind,
}

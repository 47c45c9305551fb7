"""Methods on queues (AMQP 0-9-1 §1.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.strings import octets_of
from cogwork.container.amqp091.declared_queue import Counts, Traits, address_of
from cogwork.container.amqp091.exchange_methods import bind_to, exchange_errors, unbind_from
from cogwork.container.amqp091.queue_arguments import options_of
from cogwork.container.amqp091.reply_to import REPLY_TO, entry_of_reply
from cogwork.container.amqp091.shared_queues import declare_shared
from cogwork.container.amqp091.stream_arguments import is_stream
from cogwork.container.amqp091.stream_methods import (
    count_stream,
    declare_stream,
    delete_stream,
    demand_no_stream,
    refuse_purge,
)
from cogwork.container.vhost.private_names import new_name
from cogwork.plugin.capabilities import replica_of
from cogwork.router.exchanges.binding import Binding, Destination

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.declared_queue import DeclaredQueue
    from cogwork.container.amqp091.declarer import Declarer, Work
    from cogwork.container.vhost.shared import VhostTopology

__all__ = ("HANDLERS", "name_of", "queue_named")

RESERVED = "amq."


def queue_named(channel: Declarer, name: str) -> DeclaredQueue:
    """Return a queue that a client names; an empty name is that of its last declaration.

    Raises:
        ProtocolError: There is none (404), or it is another connection's (405).
    """
    return channel.queues.demand(name_of(channel, name), channel.connection)


def name_of(channel: Declarer, name: str) -> str:
    """Return what an empty name stands for.

    Raises:
        ProtocolError: The channel has declared nothing (404).
    """
    if not name and not channel.queue:
        raise ProtocolError(ReplyCode.NOT_FOUND, "no previously declared queue")
    return name or channel.queue


def declare(channel: Declarer, method: m.QueueDeclare, _content: Content | None) -> Work | None:
    """Make a queue, or look whether it is there."""
    if method.queue.startswith(REPLY_TO):
        _look_for_requester(channel, method)
    elif method.passive:
        return _look(channel, method)
    else:
        return _declare(channel, method)
    return None


def _look(channel: Declarer, method: m.QueueDeclare) -> Work | None:
    """Tell a client of a queue that is there."""
    name = name_of(channel, method.queue)
    stream = channel.queues.streams.find(name)
    if stream is not None:
        return count_stream(channel, method, name, stream)
    return _answer(channel, method, queue_named(channel, name))


def _answer(channel: Declarer, method: m.QueueDeclare, queue: DeclaredQueue) -> Work | None:
    """Tell a client of the queue that it has declared, once its owner has counted."""
    queue.use()
    if queue.is_elsewhere:
        return _answer_later(channel, method, queue)
    _tell(channel, method, queue.name, Counts(queue.message_count, queue.consumer_count))
    return None


async def _answer_later(channel: Declarer, method: m.QueueDeclare, queue: DeclaredQueue) -> None:
    _tell(channel, method, queue.name, await channel.queues.counts(queue))


def _tell(channel: Declarer, method: m.QueueDeclare, name: str, counts: Counts) -> None:
    channel.queue = name
    if not method.nowait:
        channel.reply(
            m.QueueDeclareOk(
                queue=name, message_count=counts.messages, consumer_count=counts.consumers
            )
        )


def _look_for_requester(channel: Declarer, method: m.QueueDeclare) -> None:
    """Tell a server whether the client still waits that sent a request.

    Raises:
        ProtocolError: It does not (404).
    """
    is_there = method.queue == REPLY_TO or entry_of_reply(channel.vhost, method.queue) is not None
    # Of another container it is known that it is there; a reply to who has gone is unroutable.
    if not is_there and channel.vhost.exchanges.holder_of(method.queue) is None:
        raise ProtocolError(ReplyCode.NOT_FOUND, f"no {channel.queues.place(method.queue)}")
    if not method.nowait:
        channel.reply(m.QueueDeclareOk(queue=method.queue, message_count=0, consumer_count=1))


def _declare(channel: Declarer, method: m.QueueDeclare) -> Work | None:
    """Make a queue, unless it is there and the same."""
    name = method.queue or new_name(channel.vhost.container_id)
    wants_stream = is_stream(method.arguments)
    channel.demand("manage", f"stream/{name}" if wants_stream else address_of(name))
    if wants_stream:
        _demand_unreserved(method.queue)
        return declare_stream(channel, method, name)
    demand_no_stream(channel, method, name)
    traits = Traits(
        method.durable and not method.exclusive,  # it never outlives its connection
        method.auto_delete,
        channel.connection if method.exclusive else None,
        method.arguments,
        is_server_named=not method.queue,
    )
    queue = _equal(channel, name, traits)
    if queue is not None:
        return _answer(channel, method, queue)
    channel.queues.demand_free(name)
    _demand_unreserved(method.queue)
    _demand_dead_letters(channel, name, method)
    return _make(channel, method, name, traits)


def _demand_unreserved(name: str) -> None:
    """Check that a new queue has no name that is not for clients to give.

    Raises:
        ProtocolError: It has (403).
    """
    if name.startswith(RESERVED):
        text = f"queue name '{name}' contains reserved prefix '{RESERVED}*'"
        raise ProtocolError(ReplyCode.ACCESS_REFUSED, text)


def _equal(channel: Declarer, name: str, traits: Traits) -> DeclaredQueue | None:
    """Return a queue that is there already; None where it is not, or is to be the cluster's.

    Raises:
        ProtocolError: It was declared otherwise (406), or is another connection's (405).
    """
    queue = channel.queues.find(name)
    if queue is None or channel.queues.is_to_be_shared(queue, traits):
        return None
    channel.queues.demand_equal(queue, traits, channel.connection)
    return queue


async def _make(channel: Declarer, method: m.QueueDeclare, name: str, traits: Traits) -> None:
    options = options_of(traits.arguments, channel.queues.place(name))
    await channel.take_turn()
    topology = channel.vhost.topology
    if topology is not None and not traits.is_private:
        with exchange_errors():
            if await topology.is_shared():
                await declare_shared(channel, topology, name, traits, options)
    queue = _equal(channel, name, traits)  # another client may have made it meanwhile
    if queue is None:
        queue = channel.queues.declare(name, traits, options, channel.client.makers)
    answer = _answer(channel, method, queue)
    if answer is not None:
        await answer


def _demand_dead_letters(channel: Declarer, name: str, method: m.QueueDeclare) -> None:
    """Check that who has dead letters sent somewhere may send there."""
    exchange = method.arguments.get("x-dead-letter-exchange")
    if isinstance(exchange, str):
        channel.demand("receive", address_of(name))
        channel.demand("send", channel.vhost.exchanges.address(exchange))


def bind(channel: Declarer, method: m.QueueBind, _content: Content | None) -> Work | None:
    """Bind a queue to an exchange."""
    name = _bindable(channel, method)
    with exchange_errors():
        channel.vhost.exchanges.demand_named(method.exchange)
    is_private = False
    if channel.queues.streams.find(name) is None:
        is_private = channel.queues.demand(name, channel.connection).is_private
    binding = _binding_of(channel, method, name)
    ok = None if method.nowait else m.QueueBindOk()
    return bind_to(channel, method.exchange, binding, ok, is_private=is_private)


def unbind(channel: Declarer, method: m.QueueUnbind, _content: Content | None) -> Work | None:
    """Undo a binding; one that is not there is fine, and so are its ends."""
    name = _bindable(channel, method)
    is_private = False
    if channel.queues.find(name) is not None:
        is_private = channel.queues.demand(name, channel.connection).is_private
    binding = _binding_of(channel, method, name)
    ok = m.QueueUnbindOk()
    return unbind_from(channel, method.exchange, binding, ok, is_private=is_private)


def _binding_of(channel: Declarer, method: m.QueueBind | m.QueueUnbind, name: str) -> Binding:
    key = octets_of(_key_of(channel, method))
    return Binding(Destination("queue", name), key, method.arguments)


def _bindable(channel: Declarer, method: m.QueueBind | m.QueueUnbind) -> str:
    """Return the queue of a binding, which the client may make."""
    name = name_of(channel, method.queue)
    channel.demand("send", channel.queues.streams.address(name))
    channel.demand("receive", channel.vhost.exchanges.address(method.exchange))
    return name


def _key_of(channel: Declarer, method: m.QueueBind | m.QueueUnbind) -> str:
    """Return a routing key: where queue and key are empty, it is the queue's name (§1.7.2.3)."""
    return method.routing_key if method.queue or method.routing_key else channel.queue


def purge(channel: Declarer, method: m.QueuePurge, _content: Content | None) -> Work | None:
    """Drop what waits in a queue."""
    name = name_of(channel, method.queue)
    channel.demand("receive", channel.queues.streams.address(name))
    if channel.queues.streams.find(name) is not None:
        refuse_purge(channel, name)
    queue = channel.queues.demand(name, channel.connection)
    if queue.is_elsewhere:
        return _purge_elsewhere(channel, method, queue)
    _tell_purged(channel, method, queue.node.store.purge())
    return None


async def _purge_elsewhere(channel: Declarer, method: m.QueuePurge, queue: DeclaredQueue) -> None:
    _tell_purged(channel, method, await channel.queues.purge(queue))


def _tell_purged(channel: Declarer, method: m.QueuePurge, count: int) -> None:
    if not method.nowait:
        channel.reply(m.QueuePurgeOk(message_count=count))


def delete(channel: Declarer, method: m.QueueDelete, _content: Content | None) -> Work | None:
    """Give a queue up; one that is not there is fine (RabbitMQ)."""
    name = name_of(channel, method.queue)
    channel.demand("manage", channel.queues.streams.address(name))
    stream = channel.queues.streams.find(name)
    if stream is not None:
        return delete_stream(channel, method, name, stream)
    queue = None
    if channel.queues.find(name) is not None:
        queue = channel.queues.demand(name, channel.connection)
    topology = channel.vhost.topology
    if topology is not None and (queue is None or queue.shared is not None):
        return _delete_shared(channel, method, name, topology)
    if queue is not None:
        _demand_deletable(channel, queue)
        if queue.is_elsewhere:
            return _delete_elsewhere(channel, method, queue)
        _demand_disused(channel, method, name, Counts(queue.message_count, queue.consumer_count))
    if not method.nowait:  # before consumers of this channel are told that they have ended
        count = 0 if queue is None else queue.message_count
        channel.reply(m.QueueDeleteOk(message_count=count))
    if queue is not None:
        channel.queues.delete(queue)
    return None


def _demand_disused(channel: Declarer, method: m.QueueDelete, name: str, counts: Counts) -> None:
    channel.queues.demand_disused(
        name, counts, if_unused=method.if_unused, if_empty=method.if_empty
    )


async def _delete_shared(
    channel: Declarer, method: m.QueueDelete, name: str, topology: VhostTopology
) -> None:
    """Give a queue up at all containers; one that is not here may be new."""
    if channel.queues.find(name) is None:
        await topology.catch_up()
    stream = channel.queues.streams.find(name)
    if stream is not None:
        channel.demand("manage", channel.queues.streams.address(name))
        await delete_stream(channel, method, name, stream)
        return
    count = 0
    if channel.queues.find(name) is not None:
        queue = channel.queues.demand(name, channel.connection)
        counts = await channel.queues.counts(queue)
        _demand_disused(channel, method, name, counts)
        count = counts.messages
        with exchange_errors():
            await topology.delete_queue(name)
    if not method.nowait:
        channel.reply(m.QueueDeleteOk(message_count=count))


async def _delete_elsewhere(channel: Declarer, method: m.QueueDelete, queue: DeclaredQueue) -> None:
    counts = await channel.queues.give_up(
        queue, if_unused=method.if_unused, if_empty=method.if_empty
    )
    if not method.nowait:
        channel.reply(m.QueueDeleteOk(message_count=counts.messages))


def _demand_deletable(channel: Declarer, queue: DeclaredQueue) -> None:
    """Refuse to delete what the whole cluster has to agree on.

    Raises:
        ProtocolError: It is (406).
    """
    replica = replica_of(queue.node)
    if replica is not None and replica.home is None:
        text = "is replicated: delete it by `cogwork queue delete`"
        place = channel.queues.place(queue.name)
        raise ProtocolError(ReplyCode.PRECONDITION_FAILED, f"{place} {text}")


HANDLERS: dict[type[Method], Callable[..., Work | None]] = {
    m.QueueDeclare: declare,
    m.QueueBind: bind,
    m.QueueUnbind: unbind,
    m.QueuePurge: purge,
    m.QueueDelete: delete,
}

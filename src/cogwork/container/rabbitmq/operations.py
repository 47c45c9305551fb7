"""What requests at `/management` do: each is a method of AMQP 0-9-1, and is refused as that is.

| request | method |
|---|---|
| `PUT /queues/Q` | queue.declare |
| `GET /queues/Q` | queue.declare, passive |
| `DELETE /queues/Q` | queue.delete |
| `DELETE /queues/Q/messages` | queue.purge |
| `PUT /exchanges/E`, `DELETE /exchanges/E` | exchange.declare, exchange.delete |
| `POST /bindings`, `DELETE /bindings/src=…` | bind and unbind, of a queue or an exchange |
| `GET /bindings?src=…&dstq=…&key=…` | none |
| `PUT /auth/tokens` | connection.update-secret |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, cast

from cogwork.amqp.types import Array, UInt, ULong
from cogwork.amqp091 import methods as m
from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.queue_arguments import QUEUE_TYPE
from cogwork.container.amqp091.stream_arguments import arguments_of_stream
from cogwork.container.rabbitmq.bodies import (
    amqp_arguments,
    binding_in,
    binding_in_path,
    binding_row,
    hash_of,
    read_fields,
)
from cogwork.container.rabbitmq.requests import RequestError, Response
from cogwork.dataplane.message.basic_conversion import escaped, unescaped
from cogwork.plugin.capabilities import replica_of
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Binding, Destination

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cogwork.amqp091.method import Method
    from cogwork.container.amqp091.declared_queue import DeclaredQueue
    from cogwork.container.amqp091.declarer import Declarer
    from cogwork.container.rabbitmq.requests import Request
    from cogwork.plugin.capabilities import Streaming

    Perform = Callable[[Method], Awaitable[Method | None]]
    """Does what a method asks for; returns its answer."""
    Renew = Callable[[bytes], Awaitable[None]]
    """Has a new token hold in the place of the connection's."""

__all__ = ("Operations",)

RESERVED: Final = "amq."

BAD_REQUEST, FORBIDDEN, NOT_FOUND, CONFLICT, UNAVAILABLE = 400, 403, 404, 409, 503

_STATUS: Final = {
    ReplyCode.ACCESS_REFUSED: FORBIDDEN,
    ReplyCode.NOT_ALLOWED: FORBIDDEN,
    ReplyCode.PRECONDITION_FAILED: CONFLICT,
    ReplyCode.INTERNAL_ERROR: UNAVAILABLE,
}
"""The status of each reply code; of all others it is 400, as RabbitMQ has it."""

_QUEUE: Final = {"durable": True, "exclusive": False, "auto_delete": False, "arguments": {}}
_EXCHANGE: Final = {
    "type": "direct",
    "durable": True,
    "auto_delete": False,
    "internal": False,
    "arguments": {},
}


class Operations:
    """Carries out the requests of one pair of links."""

    def __init__(self, declarer: Declarer, perform: Perform, renew: Renew) -> None:
        """Initialize it.

        Args:
            declarer: Whose requests they are.
            perform: Does what a method asks for.
            renew: Takes a new token.
        """
        self._declarer = declarer
        self._perform = perform
        self._renew = renew

    async def answer(self, request: Request) -> Response:
        """Carry out a request.

        Raises:
            RequestError: It cannot be carried out.
        """
        match request.path:
            case ("queues", _):
                routes = {
                    "GET": self._show_queue,
                    "PUT": self._declare_queue,
                    "DELETE": self._delete_queue,
                }
            case ("queues", _, "messages"):
                routes = {"DELETE": self._purge}
            case ("exchanges", _):
                routes = {"PUT": self._declare_exchange, "DELETE": self._delete_exchange}
            case ("bindings",):
                routes = {"GET": self._show_bindings, "POST": self._bind}
            case ("bindings", _):
                routes = {"DELETE": self._unbind}
            case ("auth", "tokens"):
                routes = {"PUT": self._renew_token}
            case path:
                raise RequestError(NOT_FOUND, f"there is nothing at '/{'/'.join(path):.200}'")
        route = routes.get(request.method)
        if route is None:
            text = f"bad method {request.method!r:.80}: expected {' or '.join(routes)}"
            raise RequestError(BAD_REQUEST, text)
        try:
            return await route(request)
        except ProtocolError as error:
            status = _STATUS.get(error.code, BAD_REQUEST)
            raise RequestError(status, escaped(error.explanation)) from None

    # -- queues

    async def _show_queue(self, request: Request) -> Response:
        return await self._shown(unescaped(request.name()), 200)

    async def _declare_queue(self, request: Request) -> Response:
        fields = read_fields(request.body, "queue property", _QUEUE)
        name = unescaped(request.name())
        if not name:
            raise RequestError(BAD_REQUEST, "declare queue with empty name not allowed")
        _demand_one_line(name)
        queues = self._declarer.queues
        if name.startswith(RESERVED):
            _refuse_reserved(queues.place(name))
        is_new = queues.find(name) is None and queues.streams.find(name) is None
        await self._perform(
            m.QueueDeclare(
                queue=name,
                durable=fields["durable"],
                exclusive=fields["exclusive"],
                auto_delete=fields["auto_delete"],
                arguments=fields["arguments"],
            )
        )
        return await self._shown(name, 201 if is_new else 200)

    async def _shown(self, name: str, status: int) -> Response:
        """Show a queue, with what its owner counts."""
        self._demand_any(name)
        queues = self._declarer.queues
        try:
            ok = await self._perform(m.QueueDeclare(queue=name, passive=True))
        except ProtocolError as error:
            is_there = queues.find(name) or queues.streams.find(name)
            if error.code is ReplyCode.NOT_FOUND and not is_there:
                raise RequestError(NOT_FOUND, f"{queues.place(name)} not found") from None
            raise
        counts = cast("m.QueueDeclareOk", ok)
        stream = queues.streams.find(name)
        if stream is not None:
            traits = self._stream_row(stream)
        else:
            traits = self._queue_row(queues.demand(name, self._declarer.connection))
        row = {
            "message_count": ULong(counts.message_count),
            "consumer_count": UInt(counts.consumer_count),
            "name": escaped(name),
            "vhost": self._declarer.vhost_name,
            **traits,
        }
        return Response(status, row)

    def _demand_any(self, name: str) -> None:
        """Check that the client may do anything with a queue, as for a passive declaration."""
        address = self._declarer.queues.streams.address(name)
        if not any(self._declarer.client.may(each, address) for each in ("receive", "send")):
            self._declarer.demand("manage", address)

    def _queue_row(self, queue: DeclaredQueue) -> dict[str, object]:
        traits, replica = queue.traits, replica_of(queue.node)
        is_replicated = replica is not None and replica.home is None
        kind = traits.arguments.get(QUEUE_TYPE) or ("quorum" if is_replicated else "classic")
        here = self._declarer.vhost.container_id
        return {
            "durable": traits.is_durable,
            "auto_delete": traits.is_auto_delete,
            "exclusive": traits.owner is not None,
            "type": kind,
            "arguments": amqp_arguments(traits.arguments),
            **_placed(
                here if replica is None else replica.owner,
                () if replica is None or not is_replicated else replica.held().get("voters"),
            ),
        }

    def _stream_row(self, stream: Streaming) -> dict[str, object]:
        figures = stream.status()
        leader = figures.get("leader") or self._declarer.vhost.container_id
        return {
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "type": "stream",
            "arguments": amqp_arguments(arguments_of_stream(stream.options.shown())),
            **_placed(leader, figures.get("voters")),
        }

    async def _delete_queue(self, request: Request) -> Response:
        name = unescaped(request.name())
        _demand_one_line(name)
        ok = cast("m.QueueDeleteOk", await self._perform(m.QueueDelete(queue=name)))
        return Response(200, {"message_count": ULong(ok.message_count)})

    async def _purge(self, request: Request) -> Response:
        name, queues = unescaped(request.name()), self._declarer.queues
        try:
            ok = cast("m.QueuePurgeOk", await self._perform(m.QueuePurge(queue=name)))
        except ProtocolError as error:
            if error.code is ReplyCode.NOT_FOUND and queues.find(name) is None:
                raise RequestError(NOT_FOUND, escaped(error.explanation)) from None
            if error.code is ReplyCode.NOT_IMPLEMENTED:
                text = f"purge not supported by {queues.place(name)}"
                raise RequestError(BAD_REQUEST, escaped(text)) from None
            raise
        return Response(200, {"message_count": ULong(ok.message_count)})

    # -- exchanges

    async def _declare_exchange(self, request: Request) -> Response:
        name = unescaped(request.name())
        fields = read_fields(request.body, "exchange property", _EXCHANGE)
        _demand_named(name)
        if self._declarer.vhost.exchanges.get(name) is None:
            _demand_one_line(name)
            self._demand_unreserved(name)
        await self._perform(m.ExchangeDeclare(exchange=name, **fields))
        return Response(204)

    async def _delete_exchange(self, request: Request) -> Response:
        name = unescaped(request.name())
        _demand_one_line(name)
        _demand_named(name)
        self._demand_unreserved(name)
        await self._perform(m.ExchangeDelete(exchange=name))
        return Response(204)

    def _demand_unreserved(self, name: str) -> None:
        if name.startswith(RESERVED):
            _refuse_reserved(f"exchange '{name}' in vhost '{self._declarer.vhost_name}'")

    # -- bindings

    async def _bind(self, request: Request) -> Response:
        source, binding = binding_in(request.body)
        _demand_ends(source, binding.destination)
        await self._perform(_bind_method(unescaped(source), binding))
        return Response(204)

    async def _unbind(self, request: Request) -> Response:
        source, destination, key, wanted = binding_in_path(request.path[1])
        self._demand_both(source, destination)
        for each in self._bindings(source, destination, key):
            if hash_of(each.arguments) == wanted:
                await self._perform(_unbind_method(unescaped(source), each))
                break
        return Response(204)

    async def _show_bindings(self, request: Request) -> Response:
        source, key = request.query.get("src"), request.query.get("key")
        kind = next((each for each in ("dstq", "dste") if each in request.query), None)
        if source is None or key is None or kind is None:
            text = "bad query: expected src, key, and one of dstq and dste"
            raise RequestError(BAD_REQUEST, text)
        destination = Destination(QUEUE if kind == "dstq" else EXCHANGE, request.query[kind])
        self._demand_both(source, destination)
        found = self._bindings(source, destination, key)
        return Response(200, [binding_row(source, each) for each in found])

    def _demand_both(self, source: str, destination: Destination) -> None:
        """Check that the client may bind two things, as each method on a binding does."""
        _demand_ends(source, destination)
        declarer, (kind, name) = self._declarer, destination
        exchanges, streams = declarer.vhost.exchanges, declarer.queues.streams
        to = streams.address(name) if kind == QUEUE else exchanges.address(name)
        declarer.demand("send", to)
        declarer.demand("receive", exchanges.address(source))

    def _bindings(self, source: str, destination: Destination, key: str) -> list[Binding]:
        octets = unescaped(key).encode(errors="surrogateescape")
        wanted = Destination(destination.kind, unescaped(destination.name))
        exchanges, name = self._declarer.vhost.exchanges, unescaped(source)
        found = exchanges.bindings(name) if exchanges.get(name) is not None else ()
        return [each for each in found if each.destination == wanted and each.key == octets]

    # -- tokens

    async def _renew_token(self, request: Request) -> Response:
        if not isinstance(request.body, bytes):
            raise RequestError(BAD_REQUEST, "bad token: expected binary")
        await self._renew(request.body)
        return Response(204)


def _placed(leader: object, voters: object) -> dict[str, object]:
    """Say where a queue is: at one container, or at several of which one leads."""
    names: Sequence[object] = voters if isinstance(voters, list | tuple) else ()
    replicas = [str(each) for each in names] or ([str(leader)] if leader else [])
    found: Mapping[str, object] = {"leader": str(leader)} if leader else {}
    return {**found, "replicas": Array(replicas, str)}


def _bind_method(source: str, binding: Binding) -> Method:
    (kind, name), key = binding.destination, binding.key.decode(errors="surrogateescape")
    table = dict(binding.arguments)
    if kind == QUEUE:
        queue = unescaped(name)
        return m.QueueBind(queue=queue, exchange=source, routing_key=key, arguments=table)
    return m.ExchangeBind(
        destination=unescaped(name), source=source, routing_key=key, arguments=table
    )


def _unbind_method(source: str, binding: Binding) -> Method:
    (kind, name), key = binding.destination, binding.key.decode(errors="surrogateescape")
    table = dict(binding.arguments)
    if kind == QUEUE:
        return m.QueueUnbind(queue=name, exchange=source, routing_key=key, arguments=table)
    return m.ExchangeUnbind(destination=name, source=source, routing_key=key, arguments=table)


def _demand_one_line(name: str) -> None:
    """Refuse a name that has line breaks."""
    if "\n" in name or "\r" in name:
        text = f"Bad name '{name}': line feed and carriage return characters not allowed"
        raise RequestError(BAD_REQUEST, text)


def _demand_named(name: str) -> None:
    """Refuse the default exchange."""
    if not name:
        raise RequestError(FORBIDDEN, "operation not permitted on the default exchange")


def _demand_ends(source: str, destination: Destination) -> None:
    """Refuse the default exchange, and names with line breaks, at either end of a binding."""
    _demand_named(source)
    if destination.kind == EXCHANGE:
        _demand_named(destination.name)
    _demand_one_line(source)
    _demand_one_line(destination.name)


def _refuse_reserved(place: str) -> NoReturn:
    raise RequestError(FORBIDDEN, f"{place} starts with reserved prefix 'amq.'")

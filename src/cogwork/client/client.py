"""The client, as an application sees it: one object that stays connected.

Theory of operation. A client keeps one connection to one of its containers. Everything it opens, a
publisher, a subscription, a consumer, is a link end that the client attaches to the present
connection and to each one that takes its place. One task watches the connection and connects again
when it is lost; link ends never see more of that than a link that went and another one that came.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Self, Unpack

from cogwork.amqp.errors import Condition
from cogwork.client.call_options import Direct
from cogwork.client.calls import GRACE_S, WINDOW, arguments_of, calls_of
from cogwork.client.checks import checked_address, demand_seconds
from cogwork.client.connection.connector import Connector
from cogwork.client.connection.redirection import redirection_of
from cogwork.client.connection.url import endpoints_of, with_login
from cogwork.client.errors import ConnectError, Disconnected, NotOpened
from cogwork.client.fields import MessageFields, message_of
from cogwork.client.interception.interceptors import Interceptors
from cogwork.client.interception.receiving import (
    InterceptedBrowser,
    InterceptedConsumer,
    InterceptedSubscription,
    intercepted_handler,
)
from cogwork.client.interception.sending import InterceptedPublisher
from cogwork.client.loop_affinity import check_loop, reopening_error
from cogwork.client.options import Options, Retry
from cogwork.client.publishing.publisher import OnDoubt, Publisher
from cogwork.client.publishing.senders import Senders
from cogwork.client.receiving.consumer import Browser, Consumer
from cogwork.client.receiving.subscription import Subscription
from cogwork.client.requests.management import manage
from cogwork.client.requests.requests import REQUEST_TIMEOUT_S, Requests
from cogwork.client.requests.service import Service
from cogwork.client.schemas import Schemas
from cogwork.client.streams.stream import Stream
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.pace import MARK_AHEAD_MAX
from cogwork.dataplane.core import Core
from cogwork.io.turn import Turn
from cogwork.tls.expiry import EXPIRY

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Open
    from cogwork.client.call_options import RpcOptions
    from cogwork.client.calls import Calls, MethodService, ReplyStream
    from cogwork.client.connection.handler import ConnectionHandler
    from cogwork.client.connection.tokens import Token
    from cogwork.client.connection.url import Endpoint
    from cogwork.client.interception.interceptor import Interceptor
    from cogwork.client.links.link_end import LinkEnd
    from cogwork.dataplane.message.messages import Message
    from cogwork.dataplane.transport.wire import Wire
    from cogwork.io.turn import Waiter
    from cogwork.sasl.mechanisms import MechanismName

__all__ = ("REQUEST_TIMEOUT_S", "Client", "connect")

SUBSCRIPTION_CREDIT = 5000
"""The window at which the data plane is fastest; some half a megabyte of small messages."""

CONSUMER_CREDIT = 100
"""Items of a consumer that asks for none: few enough that its competitors get their share."""

CLOSE_TIMEOUT_S = 5.0
TICK_S = 1.0

log = logging.getLogger("cogwork.client")


class Client:
    """A connection to the mesh that mends itself. Made by `connect`.

    Attributes:
        core: Its data plane.
        connections: Counts the connections it has had.
        schemas: What is registered of the messages at each address.
        interceptors: See what the application does, from `use` on; None where there are none.
        turn: Where tasks go on that wait for what its connection brings.
        create_future: Makes what such a task waits for.
    """

    core: Core
    turn: Turn
    create_future: Callable[[], Waiter[Any]]

    def __init__(self, urls: Iterable[str | Endpoint], options: Options) -> None:
        """Is not connected yet.

        Args:
            urls: The containers to try, in this order; what was read already may be given too.
            options: How to connect.

        Raises:
            InvalidUrlError: A URL is wrong.
        """
        self.connections = 0
        self._endpoints = endpoints_of(urls)
        self._options = options
        self._handler: ConnectionHandler | None = None
        self._leaving: ConnectionHandler | None = None
        self._ends: dict[LinkEnd, None] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self._link_count = 0
        self._flusher: Flusher | None = None
        self._senders = Senders(self)
        self._requests = Requests(self, self._senders)
        self._calls: Calls | None = None
        self.interceptors: Interceptors | None = None
        self.schemas = Schemas(self)

    @property
    def flusher(self) -> Flusher:
        """Sends at the end of the loop's turn what was written in it."""
        self.demand_opened()
        assert self._flusher is not None
        return self._flusher

    def demand_opened(self) -> None:
        """Check that the client has been connected once.

        Raises:
            NotOpened: It has not.
        """
        if self._flusher is None:
            raise NotOpened(
                "not connected yet: `async with cogwork.connect(...) as client` does it"
            )

    @property
    def rpc(self) -> Calls:
        """Its calls and services."""
        if self._calls is None:
            self._calls = calls_of(self, self._options.rpc, self._options.direct)
        return self._calls

    def use(self, *interceptors: Interceptor) -> Self:
        """Have interceptors see what is sent, received, called and served.

        They see what is called, and what is opened, after this: use them before all else.

        Args:
            *interceptors: The first one begins first, and ends last.

        Raises:
            TypeError: One is no interceptor.
        """
        self.interceptors = (self.interceptors or Interceptors()).and_also(interceptors)
        return self

    # -- life

    async def __aenter__(self) -> Self:
        if self._failure is not None or self._keeper is not None:
            raise reopening_error(self._failure)
        loop = asyncio.get_running_loop()
        self.core = Core(self._on_fault)
        self.turn = Turn(loop)
        self._flusher = Flusher(self.core, self.turn.call_soon)
        self.create_future = self.turn.waiter
        self._connector = Connector(self.core, self.turn, self._endpoints, self._options)
        self._handler = await self._connector.connect()
        self.connections = 1
        self._keeper = asyncio.create_task(self._keep_connected(self._handler))
        self._timer = loop.call_later(TICK_S, self._tick)
        if self._options.direct is not None:
            self.rpc.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection and end all that was opened on it."""
        if self._keeper is None:
            return
        if self._calls is not None:
            await self._calls.close()
        self._keeper.cancel()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._keeper, *self._tasks, return_exceptions=True)
        self._keeper = None
        try:
            if self._handler is not None:
                await self._handler.close(CLOSE_TIMEOUT_S)
        finally:
            self._give_up(Disconnected("the client was closed"))

    async def _keep_connected(self, handler: ConnectionHandler) -> None:
        """Connect again whenever the connection is lost, until that is hopeless."""
        while True:
            # Whoever closes the client ends this task first, and then waits for the same.
            error = await asyncio.shield(handler.closed)
            handler.abandon()
            self._handler = None
            self._note_loss(handler, error)
            try:
                handler = await self._connector.reconnect()
            except Exception as failure:
                if not isinstance(failure, ConnectError):
                    log.exception("cannot reconnect")
                self._give_up(Disconnected(f"not connected any more: {failure}"))
                return
            self._handler = handler
            self.connections += 1
            for end in list(self._ends):
                handler.attach(end)
            self.core.flush()

    def _note_loss(self, handler: ConnectionHandler, error: AmqpError | None) -> None:
        """Tell why the connection was lost, and go where it was redirected to."""
        if error is not None and error.condition == Condition.CONNECTION_REDIRECT:
            try:
                self._connector.follow(handler.endpoint, redirection_of(handler.endpoint, error))
            except ConnectError as problem:
                log.warning("%s", problem)
            return
        if handler.fell_silent:
            self._connector.avoid(handler.endpoint)
        reason = error.description if error is not None else "it was closed"
        log.info("%s: connection lost: %s", handler.endpoint, reason)

    def _give_up(self, failure: Exception) -> None:
        self._failure = failure
        ends, self._ends = list(self._ends), {}
        for end in ends:
            end.fail(failure)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.core.tick()
        if self._handler is not None:
            self._handler.tick()
        if self._options.tls is not None:
            EXPIRY.remind()
        self.core.flush()

    def _on_fault(self, port: object, error: Exception) -> None:
        log.error("%r failed: %s", port, error, exc_info=error)

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands at present."""
        return self._handler is not None and self._handler.connection.is_open

    @property
    def wire(self) -> Wire | None:
        """The compiled half of its connection; None while there is none."""
        return self._handler.connection.wire if self._handler is not None else None

    @property
    def container(self) -> Open:
        """What the container at the other end said when the connection was opened.

        Raises:
            Disconnected: There is no connection at present.
        """
        opened = self._handler.connection.remote if self._handler is not None else None
        if opened is None or not self.is_connected:
            raise Disconnected("there is no connection at present")
        return opened

    @property
    def endpoint(self) -> Endpoint | None:
        """Where the connection leads at present; None while there is none."""
        return self._handler.endpoint if self._handler is not None and self.is_connected else None

    @property
    def name(self) -> str:
        """The container-id of this client."""
        return self._options.name

    @property
    def tls(self) -> ssl.SSLContext | None:
        """What it trusts where TLS is spoken; None for the system's authorities."""
        return self._options.tls

    @property
    def spin_us(self) -> int:
        """How long callers look for direct replies before they sleep, in microseconds."""
        return self._options.direct.spin_us if self._options.direct is not None else 0

    def beside(self, endpoint: Endpoint, options: Options) -> Client:
        """Make another connection of this client's, to somewhere else; it is not opened yet.

        Args:
            endpoint: Where to.
            options: Of that connection.
        """
        return Client([endpoint], options)

    @property
    def has_relay(self) -> bool:
        """Whether the container passes on messages that name their address themselves."""
        return self._handler is None or self._handler.has_relay

    # -- for link ends

    def next_link_name(self, address: str) -> str:
        """Return a name that no other link of this client has."""
        self._link_count += 1
        return f"{self._options.name}/{self._link_count}/{address}"

    def register(self, end: LinkEnd) -> None:
        """Keep a link end attached from now on.

        Raises:
            Disconnected: The client is closed.
        """
        if self._failure is not None:
            raise self._failure
        check_loop(self)
        self._ends[end] = None
        if self._handler is not None and self._handler.connection.is_open:
            self._handler.attach(end)
            self.flush()

    def forget(self, end: LinkEnd) -> None:
        """Do not attach a link end again."""
        self._ends.pop(end, None)

    def follow(self, redirect: AmqpError) -> dict[Endpoint, str]:
        """Take the connection where a link of it is redirected to; its links come along.

        Args:
            redirect: What the link was detached with.

        Returns:
            The address of the link there, where the redirect names one.

        Raises:
            ConnectError: It cannot be followed.
        """
        handler = self._handler
        if handler is None or self._keeper is None:
            return {}
        redirection = redirection_of(handler.endpoint, redirect)
        if handler is not self._leaving:
            self._connector.follow(handler.endpoint, redirection)
            self._leaving = handler
            self.spawn(handler.close(CLOSE_TIMEOUT_S, comes_back=True))
        if redirection.address is None:
            return {}
        return dict.fromkeys(redirection.endpoints, redirection.address)

    def flush(self) -> None:
        """Have everything sent that was written in this turn of the loop."""
        self.flusher.request()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something beside the application; it ends with the client."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- sending

    async def publish(
        self,
        address: str,
        body: object = None,
        *,
        settled: bool = False,
        timeout_s: float | None = None,
        **fields: Unpack[MessageFields],
    ) -> None:
        """Send one message and wait until it is accepted; left before it was sent, it is not.

        Args:
            address: Where to.
            body: A `Message`, or the body of one.
            settled: Whether to send without asking for the outcome.
            timeout_s: How long it may take, in seconds; None for as long as it takes.
            **fields: The message's, as in `Message`: subject, properties, durable, ttl_s,
                priority, message_id, ...

        Raises:
            Rejected: It is invalid there.
            Released: Nobody took it, or its time was over before it was sent.
            PermissionDenied: The user may not send there.
            InDoubt: The connection broke, or its time was over, before the outcome was known.
        """
        message = message_of(body, self.publish, **fields)
        message.to = checked_address(address)
        if self.interceptors is None:
            await self._senders.send(address, message, timeout_s, settled=settled)
            return
        with self.interceptors.publish(address, (message,), settled=settled):
            await self._senders.send(address, message, timeout_s, settled=settled)

    async def send_own(
        self,
        address: str,
        message: Message,
        *,
        settled: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Send one message that is not the application's: no interceptor sees it.

        Args:
            address: Where to.
            message: What is sent.
            settled: Whether to send without asking for the outcome.
            timeout_s: How long it may take, in seconds; None for as long as it takes.

        Raises:
            ClientError: It is not accepted, or that cannot be known.
        """
        message.to = checked_address(address)
        await self._senders.send(address, message, timeout_s, settled=settled)

    def publisher(self, address: str | None = None, *, on_doubt: OnDoubt = "raise") -> Publisher:
        """Open a link to send many messages; use it in `async with`.

        Args:
            address: Where to; None where each message names its own in `to`.
            on_doubt: What to do with messages in doubt, because a connection was lost or the client
                says so: `raise` `InDoubt`, or `resend` them, which may make several of one.
        """
        if self.interceptors is not None:
            return InterceptedPublisher(self.interceptors, self, address, on_doubt)
        return Publisher(self, address, on_doubt)

    # -- receiving

    def subscribe(
        self,
        address: str,
        *,
        credit: int = SUBSCRIPTION_CREDIT,
        selector: str | None = None,
        no_local: bool = False,
        settled: bool = False,
    ) -> Subscription:
        """Receive copies of the messages of a topic; use it in `async with`, then `async for`.

        Args:
            address: A topic; may hold wildcards, `topic/flights.JFK.#`.
            credit: Messages that may be on their way or waiting.
            selector: A condition in SQL over properties; None for all messages.
            no_local: Whether to leave out what this connection itself sends.
            settled: Whether publishers do not wait for this subscriber.
        """
        if self.interceptors is None:
            return Subscription(self, address, credit, selector, no_local=no_local, settled=settled)
        return InterceptedSubscription(
            self.interceptors, self, address, credit, selector, no_local=no_local, settled=settled
        )

    def consume(
        self,
        address: str,
        *,
        credit: int = CONSUMER_CREDIT,
        selector: str | None = None,
        confirms: bool = True,
        mark_ahead: int = MARK_AHEAD_MAX,
    ) -> Consumer:
        """Take items off a queue; use it in `async with`, then `async for`.

        Args:
            address: A queue, `work/...` or `queue/...`.
            credit: Items that may be on their way, waiting or held.
            selector: A condition in SQL over properties; None for all items.
            confirms: Whether the container confirms accepts; else they stand once they are sent.
            mark_ahead: How many items may count as handed over ahead of the application, from 1 to
                256. Only one that takes less than 50 microseconds for an item gets more than one;
                1 never gives it more.
        """
        if self.interceptors is None:
            return Consumer(
                self, address, credit, selector, confirms=confirms, mark_ahead=mark_ahead
            )
        return InterceptedConsumer(
            self.interceptors,
            self,
            address,
            credit,
            selector,
            confirms=confirms,
            mark_ahead=mark_ahead,
        )

    def browse(
        self, address: str, *, credit: int = CONSUMER_CREDIT, selector: str | None = None
    ) -> Browser:
        """Look at a queue's items and leave them there; use it in `async with`.

        Args:
            address: A queue.
            credit: Items that may be on their way or waiting.
            selector: A condition in SQL over properties; None for all items.
        """
        if self.interceptors is not None:
            return InterceptedBrowser(self.interceptors, self, address, credit, selector)
        return Browser(self, address, credit, selector)

    def stream(self, name: str) -> Stream:
        """Append to a stream, and read it.

        Args:
            name: Its name, `orders`, or its address, `stream/orders`.
        """
        return Stream(self, name)

    # -- requests

    async def request(
        self,
        address: str,
        body: object = None,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        **fields: Unpack[MessageFields],
    ) -> Message:
        """Send a request and wait for its reply.

        Args:
            address: Whom to ask.
            body: A `Message`, or the body of one.
            timeout_s: How long the reply may take; the request expires with it.
            **fields: The message's, as in `Message`.

        Raises:
            CallTimeout: No reply came in time.
            CallFailed: The service answered with an error.
            Released: Nobody serves the address.
        """
        demand_seconds("timeout_s", timeout_s)
        message = message_of(body, self.request, **fields)
        message.to = checked_address(address)
        if self.interceptors is None:
            return await self._requests.send(address, message, timeout_s)
        with self.interceptors.publish(address, (message,)):
            return await self._requests.send(address, message, timeout_s)

    def serve(
        self, address: str, handler: Callable[[Message], object], *, concurrency: int = 16
    ) -> Service:
        """Answer requests for as long as an `async with` lasts.

        Args:
            address: Where requests come.
            handler: Gets a request; returns a body, a `Message`, or an awaitable of either. What
                it raises is the answer too.
            concurrency: Requests that are handled at once.
        """
        if self.interceptors is not None:
            handler = intercepted_handler(self.interceptors, address, handler)
        return Service(self, address, handler, concurrency)

    async def manage(
        self, operation: str, properties: Mapping[str, object], body: object = None
    ) -> Message:
        """Ask the container's `$management` node.

        Args:
            operation: Such as `READ` or `QUERY`.
            properties: Further application-properties of the request: type, name, ...
            body: What the operation takes, such as the options of what is to be made.

        Raises:
            LinkRefused: It is not done; the error says why.
        """
        return await manage(self, operation, properties, body)

    # -- calls: arguments are given as keywords; where one has the name of an option, with its `_s`
    # or without, in `arguments`

    def call(
        self,
        topic: str,
        method: str,
        /,
        *,
        server: str | None = None,
        timeout_s: float | None = None,
        result: Any = None,  # noqa: ANN401  # any type
        heartbeat_s: float | None = None,
        idempotency_key: str | None = None,
        exchange: str | None = None,
        codec: str | None = None,
        settled: bool | None = None,
        arguments: Mapping[str, object] | None = None,
        **keywords: object,
    ) -> Coroutine[Any, Any, Any]:
        """Call a method of one server of a topic, and return what it returns.

        Args:
            topic: What is asked.
            method: What is to be run.
            server: The one server that is meant; None for any.
            timeout_s: How long it may take, in seconds; the work ends with it. None for the
                client's usual time.
            result: The type to convert the result to; None for what comes.
            heartbeat_s: The longest silence of the server, in seconds; None for any.
            idempotency_key: The same for repeated calls: a server repeats its reply.
            exchange: The second level of the address; None for the usual one.
            codec: What the arguments are written in; None for the usual one.
            settled: Whether to send the request settled; None as usual.
            arguments: Further arguments.
            **keywords: The arguments.

        Raises:
            TypeError: `timeout` or `heartbeat` is a keyword: an option without its `_s`, or an
                argument of the method, which goes into `arguments`.
            Unserialisable: An argument cannot be carried; nothing was sent.
            Unreachable: Nobody serves the topic, or the server, until the deadline.
            CallTimeout: It was sent, and no reply came in time.
            ServerLost: The server's heartbeats ended.
            RemoteError: The method raised an exception.
            CallFailed: The server has not run it, or cannot say what it returned: `NoSuchMethod`,
                `BadArguments`, `ReplyTooLarge`, `CallCancelled`, `BadReply`.
            InDoubt: The connection broke; it may have been run.
        """
        return self.rpc.call(
            topic,
            method,
            arguments_of(keywords, arguments, "timeout", "heartbeat"),
            server=server,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
            settled=settled,
            heartbeat_s=heartbeat_s,
            key=idempotency_key,
            result=result,
        )

    async def cast(
        self,
        topic: str,
        method: str,
        /,
        *,
        server: str | None = None,
        timeout_s: float | None = None,
        ttl_s: float | None = None,
        idempotency_key: str | None = None,
        exchange: str | None = None,
        codec: str | None = None,
        settled: bool | None = None,
        arguments: Mapping[str, object] | None = None,
        **keywords: object,
    ) -> None:
        """Have a method run by one server of a topic, and does not wait for it.

        Args:
            topic: What is asked.
            method: What is to be run.
            server: The one server that is meant; None for any.
            timeout_s: How long to try to send it, in seconds; None for the client's usual time.
            ttl_s: After which time it is not to be run any more, in seconds; None for ever.
            idempotency_key: The same for repeated casts: a server runs it once.
            exchange: The second level of the address; None for the usual one.
            codec: What the arguments are written in; None for the usual one.
            settled: Whether to send it settled; else a server has it when this returns.
            arguments: Further arguments.
            **keywords: The arguments.

        Raises:
            Unserialisable: An argument cannot be carried; nothing was sent.
            Unreachable: Nobody serves the topic, or the server, until the time was over.
            Released: Nobody took it until then.
            InDoubt: Whether somebody has it cannot be known.
        """
        await self.rpc.cast(
            topic,
            method,
            arguments_of(keywords, arguments, "timeout", "ttl"),
            server=server,
            timeout_s=timeout_s,
            ttl_s=ttl_s,
            exchange=exchange,
            codec=codec,
            settled=settled,
            key=idempotency_key,
        )

    async def fanout(
        self,
        topic: str,
        method: str,
        /,
        *,
        timeout_s: float | None = None,
        ttl_s: float | None = None,
        exchange: str | None = None,
        codec: str | None = None,
        settled: bool | None = None,
        arguments: Mapping[str, object] | None = None,
        **keywords: object,
    ) -> None:
        """Have a method run by every server of a topic that there is, and does not wait for it.

        Args:
            topic: What is asked.
            method: What is to be run.
            timeout_s: How long to try to send it, in seconds; None for the client's usual time.
            ttl_s: After which time it is not to be run any more, in seconds; None for ever.
            exchange: The second level of the address; None for the usual one.
            codec: What the arguments are written in; None for the usual one.
            settled: Whether to send it settled.
            arguments: Further arguments.
            **keywords: The arguments.

        Raises:
            Unserialisable: An argument cannot be carried; nothing was sent.
        """
        given = arguments_of(keywords, arguments, "timeout", "ttl")
        await self.rpc.fanout(
            topic,
            method,
            given,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
            settled=settled,
            ttl_s=ttl_s,
        )

    def call_stream(
        self,
        topic: str,
        method: str,
        /,
        *,
        server: str | None = None,
        timeout_s: float | None = None,
        window: int = WINDOW,
        result: Any = None,  # noqa: ANN401  # any type
        exchange: str | None = None,
        codec: str | None = None,
        settled: bool | None = None,
        arguments: Mapping[str, object] | None = None,
        **keywords: object,
    ) -> ReplyStream:
        """Call a method that yields, and iterate what it yields; leaving cancels the work.

        Args:
            topic: What is asked.
            method: What is to be run.
            server: The one server that is meant; None for any.
            timeout_s: The longest silence of either side, in seconds.
            window: Parts that may be on their way or waiting, 1 to 1,000: the method waits beyond.
            result: The type to convert parts to; None for what comes.
            exchange: The second level of the address; None for the usual one.
            codec: What the arguments are written in; None for the usual one.
            settled: Whether to send the request settled; None as usual.
            arguments: Further arguments.
            **keywords: The arguments.

        Raises:
            Unserialisable: An argument cannot be carried; nothing was sent.
        """
        return self.rpc.call_stream(
            topic,
            method,
            arguments_of(keywords, arguments, "timeout"),
            server=server,
            timeout_s=timeout_s,
            window=window,
            exchange=exchange,
            codec=codec,
            settled=settled,
            result=result,
        )

    def service(
        self,
        topic: str,
        *,
        server: str | None = None,
        concurrency: int = 64,
        exchange: str | None = None,
        grace_s: float = GRACE_S,
        direct: Direct | bool | None = None,
    ) -> MethodService:
        """Serve methods; use it in `async with`.

        Args:
            topic: What callers name.
            server: What callers name who mean this one; None for the name of this client.
            concurrency: Calls that are worked on at once; more of them wait.
            exchange: The second level of its addresses; None for the usual one.
            grace_s: How long work may go on when the service is stopped, in seconds.
            direct: Where to listen for calls that come without a hop; None as the client does.
        """
        return self.rpc.service(
            topic,
            server,
            concurrency=concurrency,
            exchange=exchange,
            grace_s=grace_s,
            direct=direct,
        )

    def threaded_service(
        self,
        topic: str,
        *,
        server: str | None = None,
        concurrency: int = 16,
        exchange: str | None = None,
        grace_s: float = GRACE_S,
        direct: Direct | bool | None = None,
    ) -> MethodService:
        """Serve methods that may block, in threads; see `service`.

        Args:
            topic: What callers name.
            server: What callers name who mean this one; None for the name of this client.
            concurrency: Threads, and so calls that are worked on at once.
            exchange: The second level of its addresses; None for the usual one.
            grace_s: How long work may go on when the service is stopped, in seconds.
            direct: Where to listen for calls that come without a hop; None as the client does.
        """
        return self.rpc.threaded_service(
            topic,
            server,
            concurrency=concurrency,
            exchange=exchange,
            grace_s=grace_s,
            direct=direct,
        )


def connect(  # the keyword options are those of Options
    urls: str | Iterable[str | Endpoint],
    *,
    user: str | None = None,
    password: str | None = None,
    name: str | None = None,
    token: Token | None = None,
    tls: ssl.SSLContext | None = None,
    sasl: MechanismName | tuple[MechanismName, ...] | None = None,
    retry: Retry | None = None,
    force: bool = False,
    connect_timeout_s: float = 10.0,
    idle_timeout_s: float = 60.0,
    max_frame_size_bytes: int = 65536,
    rpc: RpcOptions | None = None,
    direct: Direct | bool = False,
) -> Client:
    """Connect to the mesh; use it in `async with`.

    Args:
        urls: `amqp://`, `amqps://`, `ws://` or `wss://` `[user:password@]host[:port][/vhost]`; of
            several, between commas or as a list, the first one that answers is taken, now and
            after each loss; it may redirect to another container of the mesh.
        user: Who logs in, where a URL names nobody.
        password: The user's, where a URL holds none: so it need not stand in it.
        name: The container-id of this client; None makes one up.
        token: What to log in by, for SASL OAUTHBEARER: a text, or a function, async or not, that
            returns one for each connection. It goes only where TLS is spoken, or on this machine,
            unless `sasl` names that mechanism.
        tls: Certificates; see `cogwork.io.tls.client_context`.
        sasl: The SASL mechanism, such as `SCRAM-SHA-256`, or a tuple of those that may be used;
            None chooses the strongest that suits.
        retry: Pauses between attempts to connect again.
        force: Whether to ask never to be redirected, and to follow no redirect.
        connect_timeout_s: How long one host may take to answer.
        idle_timeout_s: Silence after which the connection counts as lost; 0 for never.
        max_frame_size_bytes: The largest frame the container may send.
        rpc: Addresses, codec and times of calls.
        direct: Whether calls go to their servers without a hop, and where services listen for such.

    Raises:
        InvalidUrlError: A URL is wrong, the list is empty, or `password` has no user.
    """
    if user is not None or password is not None:
        urls = with_login(urls, user, password)
    given = {
        "name": name,
        "token": token,
        "tls": tls,
        "sasl": sasl,
        "retry": retry,
        "force": force,
        "connect_timeout_s": connect_timeout_s,
        "idle_timeout_s": idle_timeout_s,
        "max_frame_size_bytes": max_frame_size_bytes,
        "rpc": rpc,
        "direct": Direct() if direct is True else direct or None,
    }
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    return Client(urls, Options(**options))

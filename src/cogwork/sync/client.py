"""A client without asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, Unpack

from cogwork.client.client import CONSUMER_CREDIT, REQUEST_TIMEOUT_S, SUBSCRIPTION_CREDIT
from cogwork.client.client import connect as connect_async
from cogwork.sync.closing import Closing
from cogwork.sync.ends import Consumer, Publisher, Receiver
from cogwork.sync.loop_thread import LoopThread, NoThread, on_loop
from cogwork.sync.rpc import PartIterator, ThreadedService
from cogwork.sync.schemas import Schemas
from cogwork.sync.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.client.calls import MethodService, ReplyStream
    from cogwork.client.client import Client as AsyncClient
    from cogwork.client.fields import MessageFields
    from cogwork.client.interception.interceptor import Interceptor
    from cogwork.client.publishing.publisher import OnDoubt
    from cogwork.dataplane.message.messages import Message

__all__ = ("Client", "connect")


class Client(Closing):
    """A connection to the mesh that mends itself. Made by `connect`, used in `with`.

    Attributes:
        schemas: What is registered of the messages at each address.
    """

    schemas: Schemas

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._thread: LoopThread = NoThread()
        self.schemas = Schemas(self._thread, client.schemas)

    def __enter__(self) -> Self:
        thread = LoopThread()
        try:
            thread.wait(self._client.__aenter__())
        except BaseException:
            thread.stop()
            raise
        self._thread = thread
        self.schemas = Schemas(thread, self._client.schemas)
        return super().__enter__()

    def close(self) -> None:
        """Close the connection, and end the thread; more than once, and by several, is no fault.

        Does nothing in the child of a fork: the connection is its parent's.

        Raises:
            RuntimeError: This is that thread: an `async def` method of a service runs on it.
        """
        self._thread.stop(self._client.close)

    def use(self, *interceptors: Interceptor) -> Self:
        """Have interceptors see what is sent, received, called and served.

        They see what is called, and what is opened, after this: use them before all else.

        Args:
            *interceptors: The first one begins first, and ends last.

        Raises:
            TypeError: One is no interceptor.
        """
        self._client.use(*interceptors)
        return self

    def publish(
        self,
        address: str,
        body: object = None,
        *,
        settled: bool = False,
        timeout_s: float | None = None,
        **fields: Unpack[MessageFields],
    ) -> None:
        """Send one message and wait until it is accepted.

        Args:
            address: Where to.
            body: A `Message`, or the body of one.
            settled: Whether to send without asking for the outcome.
            timeout_s: How long it may take, in seconds; None for as long as it takes.
            **fields: The message's, as in `Message`: subject, properties, durable, ttl_s, ...

        Raises:
            Rejected: It is invalid there.
            Released: Nobody took it, or its time was over before it was sent.
            PermissionDenied: The user may not send there.
            InDoubt: The connection broke, or its time was over, before the outcome was known.
        """
        self._thread.wait(
            self._client.publish(address, body, settled=settled, timeout_s=timeout_s, **fields)
        )

    def request(
        self,
        address: str,
        body: object = None,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        **fields: Unpack[MessageFields],
    ) -> Message:
        """Send a request and return its reply.

        Args:
            address: Where to.
            body: A `Message`, or the body of one.
            timeout_s: How long the reply may take, in seconds.
            **fields: The message's, as in `Message`.

        Raises:
            CallTimeout: No reply came in time.
            CallFailed: The service answered with an error.
            Released: Nobody serves the address.
        """
        return self._thread.wait(self._client.request(address, body, timeout_s=timeout_s, **fields))

    def publisher(self, address: str, *, on_doubt: OnDoubt = "raise") -> Publisher:
        """Open a link to send many messages to one address; use it in `with`.

        Args:
            address: Where to.
            on_doubt: What to do with messages in doubt, because a connection was lost or the client
                says so: `raise` `InDoubt`, or `resend` them, which may make several of one.
        """
        return Publisher(
            self._thread,
            self._thread.wait(on_loop(self._client.publisher, address, on_doubt=on_doubt)),
        )

    def subscribe(
        self,
        address: str,
        *,
        credit: int = SUBSCRIPTION_CREDIT,
        selector: str | None = None,
        no_local: bool = False,
    ) -> Receiver[Message]:
        """Receive copies of the messages of a topic; use it in `with`, then in `for`.

        Args:
            address: A topic; may hold wildcards, `topic/flights.JFK.#`.
            credit: Messages that may be on their way or waiting.
            selector: A condition in SQL over properties; None for all messages.
            no_local: Whether to leave out what this connection itself sends.
        """
        work = on_loop(
            self._client.subscribe, address, credit=credit, selector=selector, no_local=no_local
        )
        return Receiver(self._thread, self._thread.wait(work))

    def consume(
        self, address: str, *, credit: int = CONSUMER_CREDIT, selector: str | None = None
    ) -> Consumer:
        """Take items off a queue; use it in `with`, then in `for`.

        Args:
            address: A queue, `work/...` or `queue/...`.
            credit: Items that may be on their way, waiting or held.
            selector: A condition in SQL over properties; None for all items.
        """
        work = on_loop(self._client.consume, address, credit=credit, selector=selector)
        return Consumer(self._thread, self._thread.wait(work))

    def browse(
        self, address: str, *, credit: int = CONSUMER_CREDIT, selector: str | None = None
    ) -> Receiver[Message]:
        """Look at a queue's items and leave them there; use it in `with`, then in `for`.

        Args:
            address: A queue.
            credit: Items that may be on their way or waiting.
            selector: A condition in SQL over properties; None for all items.
        """
        work = on_loop(self._client.browse, address, credit=credit, selector=selector)
        return Receiver(self._thread, self._thread.wait(work))

    def stream(self, name: str) -> Stream:
        """Append to a stream, and read it.

        Args:
            name: Its name, `orders`, or its address, `stream/orders`.
        """
        return Stream(self._thread, self._thread.wait(on_loop(self._client.stream, name)))

    # -- calls: options as in the asyncio client

    def call(self, topic: str, method: str, /, **options: Any) -> Any:  # noqa: ANN401  # passed on
        """Call a method of one server of a topic, and return what it returns.

        Args:
            topic: What is asked.
            method: What is to be run.
            **options: The arguments, and the options of the asyncio client's `call`: `server`,
                `timeout_s`, `result`, `heartbeat_s`, `idempotency_key`, ...

        Raises:
            Unserialisable: An argument cannot be carried; nothing was sent.
            Unreachable: Nobody serves the topic, or the server, until the deadline.
            CallTimeout: It was sent, and no reply came in time.
            RemoteError: The method raised an exception.
            CallFailed: The server has not run it, or cannot say what it returned.
            InDoubt: The connection broke; it may have been run.
        """
        return self._thread.wait(_called(self._client, topic, method, options))

    def cast(self, topic: str, method: str, /, **options: Any) -> None:
        """Have a method run by one server of a topic, and does not wait for it.

        Args:
            topic: What is asked.
            method: What is to be run.
            **options: The arguments, and the options of the asyncio client's `cast`: `server`,
                `timeout_s`, `ttl_s`, `idempotency_key`, ...
        """
        self._thread.wait(self._client.cast(topic, method, **options))

    def fanout(self, topic: str, method: str, /, **options: Any) -> None:
        """Have a method run by every server of a topic that there is, and does not wait for it.

        Args:
            topic: What is asked.
            method: What is to be run.
            **options: The arguments, and the options of the asyncio client's `fanout`.
        """
        self._thread.wait(self._client.fanout(topic, method, **options))

    def call_stream(self, topic: str, method: str, /, **options: Any) -> PartIterator:
        """Call a method that yields; iterate what is returned, in `with` where it may end early.

        Args:
            topic: What is asked.
            method: What is to be run.
            **options: The arguments, and the options of the asyncio client's `call_stream`.
        """
        return PartIterator(
            self._thread, self._thread.wait(_parts_of(self._client, topic, method, options))
        )

    def service(self, topic: str, **options: Any) -> ThreadedService:
        """Serve methods in threads; use it in `with`.

        Args:
            topic: What callers name.
            **options: Those of the asyncio client's `threaded_service`: `server`, ...
        """
        return ThreadedService(
            self._thread, self._thread.wait(_service_of(self._client, topic, options))
        )


def connect(urls: str | Iterable[str], **options: Any) -> Client:
    """Connect to the mesh; use it in `with`.

    Args:
        urls: As for `cogwork.connect`.
        **options: As for `cogwork.connect`.

    Raises:
        InvalidUrlError: A URL is wrong.
    """
    return Client(connect_async(urls, **options))


async def _called(client: AsyncClient, topic: str, method: str, options: dict[str, Any]) -> Any:  # noqa: ANN401  # what it returns
    return await client.call(topic, method, **options)


async def _parts_of(
    client: AsyncClient, topic: str, method: str, options: dict[str, Any]
) -> ReplyStream:
    return client.call_stream(topic, method, **options)


async def _service_of(client: AsyncClient, topic: str, options: dict[str, Any]) -> MethodService:
    return client.threaded_service(topic, **options)

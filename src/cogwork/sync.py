"""The client for programs without an event loop: the same calls, and they block.

    with cogwork.sync.connect("amqp://localhost") as mesh:
        mesh.publish("topic/hello", b"world")

Theory of operation. A facade over the asyncio client, which runs on a loop in a thread of its own:
each call is handed to that loop and waited for. Receivers take what has arrived in batches, so that
most messages cost no hand-over between the threads. A mesh may be used by several threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, Unpack

from cogwork.client.closing import Closing
from cogwork.client.mesh import CONSUMER_CREDIT, REQUEST_TIMEOUT_S, SUBSCRIPTION_CREDIT
from cogwork.client.mesh import connect as connect_async
from cogwork.client.on_thread import OnThread
from cogwork.client.publisher import Publisher as AsyncPublisher
from cogwork.client.rpc.facade import SyncRpcCalls
from cogwork.client.stream import READ_CREDIT
from cogwork.dataplane.items import Item
from cogwork.dataplane.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from cogwork.client.consumer import Consumer as AsyncConsumer
    from cogwork.client.fields import MessageFields
    from cogwork.client.mesh import Mesh as AsyncMesh
    from cogwork.client.outcome import Outcome
    from cogwork.client.publisher import OnDoubt
    from cogwork.client.receiver import Receiver as AsyncReceiver
    from cogwork.client.schemas import Schemas as AsyncSchemas
    from cogwork.client.stream import OnTruncated
    from cogwork.client.stream import Stream as AsyncStream
    from cogwork.client.stream_start import StreamStart
    from cogwork.consensus.engine import Snapshot
    from cogwork.dataplane.stream_inbox import Record
    from cogwork.schema import Registered

__all__ = ("Consumer", "Mesh", "Publisher", "Receiver", "Schemas", "Stream", "connect")

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Message)

BATCH_MAX = 1000


class _LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cogwork-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.get_loop().run_forever()

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs `work` there and waits for its result; what is interrupted is cancelled there."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class Publisher(OnThread[AsyncPublisher]):
    """Sends to one address; made by `Mesh.publisher`, used in `with`."""

    def send(self, body: object, *, settled: bool = False, **fields: Unpack[MessageFields]) -> None:
        """Sends a message and waits until it is accepted; see the asyncio client's `send`."""
        self._thread.wait(self._counterpart.send(body, settled=settled, **fields))

    def send_batch(self, bodies: Iterable[object], *, settled: bool = False) -> list[Outcome]:
        """Sends messages and waits for all of their outcomes, which it returns."""
        return self._thread.wait(self._counterpart.send_batch(list(bodies), settled=settled))


class Receiver(OnThread["AsyncReceiver[M]"], Generic[M]):
    """Receives from one address; made by `Mesh.subscribe`, used in `with`, then in `for`."""

    def __init__(self, thread: _LoopThread, receiver: AsyncReceiver[M]) -> None:
        super().__init__(thread, receiver)
        self._taken: deque[M] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> M:
        message = self.receive()
        if message is None:
            raise StopIteration
        return message

    def receive(self, timeout_s: float | None = None) -> M | None:
        """Returns the next message; None where none came in time.

        Args:
            timeout_s: How long to wait, in seconds; None for ever.
        """
        if not self._taken:
            self._taken.extend(self._thread.wait(self._take(timeout_s)))
        return self._taken.popleft() if self._taken else None

    def drain(self) -> list[M]:
        """Returns what is there now, at most as much as the credit; does not wait for more."""
        taken = [*self._taken, *self._thread.wait(self._counterpart.drain())]
        self._taken.clear()
        return taken

    async def _take(self, timeout_s: float | None) -> list[M]:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._counterpart.take(self._batch_max)
        except TimeoutError:
            return []

    _batch_max = BATCH_MAX


class Consumer(Receiver[Item]):
    """Takes items off a queue; made by `Mesh.consume`. Items are settled through the consumer."""

    _batch_max = 1
    """An item that is handed over counts as worked on: none is taken ahead."""

    def __init__(self, thread: _LoopThread, consumer: AsyncConsumer) -> None:
        super().__init__(thread, consumer)

    def accept(self, item: Item) -> None:
        """Claims an item as processed, and waits until the claim stands.

        Raises:
            StaleAttempt: The item belongs to somebody else.
        """
        self._thread.wait(_accepted(item))

    def release(self, item: Item) -> None:
        """Gives an item back as if it had never been sent."""
        self._call(item.release)

    def reject(self, item: Item, reason: object = "") -> None:
        """Refuses an item for good; see `Item.reject`."""
        self._call(item.reject, reason)

    def modify(self, item: Item, *, failed: bool = False, undeliverable_here: bool = False) -> None:
        """Gives an item back, changed; see `Item.modify`."""
        self._call(item.modify, failed=failed, undeliverable_here=undeliverable_here)

    def _call(
        self, function: Callable[P, object], *arguments: P.args, **keywords: P.kwargs
    ) -> None:
        self._thread.wait(_made(function, *arguments, **keywords))


async def _accepted(item: Item) -> None:
    await item.accept()


class Stream:
    """One stream: appends to it, and reads it; made by `Mesh.stream`."""

    def __init__(self, thread: _LoopThread, stream: AsyncStream) -> None:
        self._thread = thread
        self._stream = stream

    def append(self, bodies: Iterable[object]) -> None:
        """Appends messages, in order, each once, and waits until all are kept."""
        self._thread.wait(self._stream.append(list(bodies)))

    def publish(self, body: object, **fields: Unpack[MessageFields]) -> None:
        """Appends one message and waits until it is kept."""
        self._thread.wait(self._stream.publish(body, **fields))

    def read(
        self,
        start: StreamStart = "next",
        *,
        credit: int = READ_CREDIT,
        selector: str | None = None,
        on_truncated: OnTruncated = "raise",
    ) -> Receiver[Record]:
        """Reads from a place on; see the asyncio client's `read`."""
        made = _made(
            self._stream.read, start, credit=credit, selector=selector, on_truncated=on_truncated
        )
        return Receiver(self._thread, self._thread.wait(made))

    def save_snapshot(self, data: bytes, offset: int) -> None:
        """Keeps an application's state up to before `offset` in the stream."""
        self._thread.wait(self._stream.save_snapshot(data, offset))

    def load_snapshot(self) -> Snapshot | None:
        """Returns the newest snapshot; None where there is none."""
        return self._thread.wait(self._stream.load_snapshot())

    def close(self) -> None:
        """Lets the link go that messages are appended on."""
        self._thread.wait(self._stream.close())


class Schemas:
    """What is registered of the messages at each address; see the asyncio client's `schemas`."""

    def __init__(self, thread: _LoopThread, schemas: AsyncSchemas) -> None:
        self._thread = thread
        self._schemas = schemas

    def register(
        self,
        address: str,
        definition: bytes | str | Mapping[str, Any] | bool,  # a JSON Schema, too
        *,
        kind: str = "json",
        message: str = "",
        must_fit: bool = True,
    ) -> int:
        """Gives an address a schema, or a new version of the one it has; returns the version."""
        return self._thread.wait(
            self._schemas.register(
                address, definition, kind=kind, message=message, must_fit=must_fit
            )
        )

    def unregister(self, address: str) -> None:
        """Takes an address its schema, with all versions."""
        self._thread.wait(self._schemas.unregister(address))

    def find(self, address: str, version: int | None = None) -> Registered | None:
        """Returns what is registered for the messages at an address; None where nothing is."""
        return self._thread.wait(self._schemas.find(address, version))

    def versions(self, address: str) -> Sequence[Registered]:
        """Lists what is registered under an address or a pattern, the oldest version first."""
        return self._thread.wait(self._schemas.versions(address))

    def all(self) -> list[Registered]:
        """Lists what is registered: the newest version of each address."""
        return self._thread.wait(self._schemas.all())

    def encode(self, address: str, value: object, **fields: Unpack[MessageFields]) -> Message:
        """Makes a message of a value, as the schema of an address says."""
        return self._thread.wait(self._schemas.encode(address, value, **fields))

    def decode(self, message: Message, address: str | None = None) -> object:
        """Reads what is in a message, as the schema of its address says."""
        return self._thread.wait(self._schemas.decode(message, address))

    def check(self, message: Message, address: str | None = None) -> str | None:
        """Says what is wrong with a message by the newest schema; None where nothing is."""
        return self._thread.wait(self._schemas.check(message, address))


class Mesh(SyncRpcCalls, Closing):
    """A connection to the mesh that mends itself. Made by `connect`, used in `with`.

    Attributes:
        schemas: What is registered of the messages at each address.
    """

    schemas: Schemas

    def __init__(self, mesh: AsyncMesh) -> None:
        self._mesh = mesh
        self._thread: _LoopThread

    def __enter__(self) -> Self:
        self._thread = _LoopThread()
        self.schemas = Schemas(self._thread, self._mesh.schemas)
        try:
            self._thread.wait(self._mesh.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        return super().__enter__()

    def close(self) -> None:
        """Closes the connection, and ends the thread."""
        try:
            self._thread.wait(self._mesh.close())
        finally:
            self._thread.stop()

    def publish(
        self,
        address: str,
        body: object = None,
        *,
        settled: bool = False,
        **fields: Unpack[MessageFields],
    ) -> None:
        """Sends one message and waits until it is accepted; see the asyncio client's `publish`."""
        self._thread.wait(self._mesh.publish(address, body, settled=settled, **fields))

    def request(
        self,
        address: str,
        body: object = None,
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        **fields: Unpack[MessageFields],
    ) -> Message:
        """Sends a request and returns its reply; see the asyncio client's `request`."""
        return self._thread.wait(self._mesh.request(address, body, timeout_s=timeout_s, **fields))

    def publisher(self, address: str, *, on_doubt: OnDoubt = "raise") -> Publisher:
        """Opens a link to send many messages to one address."""
        return Publisher(
            self._thread, self._thread.wait(_made(self._mesh.publisher, address, on_doubt=on_doubt))
        )

    def subscribe(
        self,
        address: str,
        *,
        credit: int = SUBSCRIPTION_CREDIT,
        selector: str | None = None,
        no_local: bool = False,
    ) -> Receiver[Message]:
        """Receives copies of the messages of a topic."""
        made = _made(
            self._mesh.subscribe, address, credit=credit, selector=selector, no_local=no_local
        )
        return Receiver(self._thread, self._thread.wait(made))

    def consume(
        self, address: str, *, credit: int = CONSUMER_CREDIT, selector: str | None = None
    ) -> Consumer:
        """Takes items off a queue."""
        made = _made(self._mesh.consume, address, credit=credit, selector=selector)
        return Consumer(self._thread, self._thread.wait(made))

    def browse(
        self, address: str, *, credit: int = CONSUMER_CREDIT, selector: str | None = None
    ) -> Receiver[Message]:
        """Looks at a queue's items and leaves them there."""
        made = _made(self._mesh.browse, address, credit=credit, selector=selector)
        return Receiver(self._thread, self._thread.wait(made))

    def stream(self, name: str) -> Stream:
        """Appends to a stream, and reads it."""
        return Stream(self._thread, self._thread.wait(_made(self._mesh.stream, name)))


async def _made(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Calls on the loop what needs a running one."""
    return function(*arguments, **keywords)


def connect(urls: str | Iterable[str], **options: Any) -> Mesh:  # noqa: ANN401  # passed on
    """Connects to the mesh; use it in `with`.

    Args:
        urls: As for `cogwork.connect`.
        **options: As for `cogwork.connect`.

    Raises:
        InvalidUrlError: A URL is wrong.
    """
    return Mesh(connect_async(urls, **options))

"""The serving half of RPC: requests arrive, methods run side by side, replies leave.

Theory of operation. A service has three receiving links: of those addressed to one server of its
topic, to itself, and to all servers. Requests are taken in the data plane's own batch; a plain
function runs there and then, and its reply leaves with that batch, so it must not block. A
coroutine function runs in a task. What is more than the concurrency waits, and is credit that the
senders do not get: they turn to other servers, or wait.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp.terminus import COPY, MOVE
from cogwork.client.checks import demand_seconds
from cogwork.client.rpc.codec import codec_for
from cogwork.client.rpc.context import CURRENT
from cogwork.client.rpc.direct.door import Door
from cogwork.client.rpc.direct.meeting import DIRECT
from cogwork.client.rpc.errors import CALL_CANCELLED
from cogwork.client.rpc.inlet import Inlet
from cogwork.client.rpc.keyed import KeyedReplies
from cogwork.client.rpc.method import Method, WrongArgumentsError
from cogwork.client.rpc.outlet import RoutedOutlet
from cogwork.client.rpc.wheel import Wheel
from cogwork.client.rpc.wire import (
    CANCEL,
    CREDIT,
    HEARTBEAT_S,
    KEY,
    MORE,
    STREAM_S,
    id_of,
    refusal_reply,
)
from cogwork.client.rpc.work import BEATS, Work
from cogwork.client.rpc.works import Works
from cogwork.dataplane.client.posting_errors import MessageTooLarge
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.amqp.message import MessageId
    from cogwork.client.mesh import Mesh
    from cogwork.client.rpc.direct.options import Direct
    from cogwork.client.rpc.options import RpcOptions
    from cogwork.client.rpc.outlet import Outlet
    from cogwork.dataplane.client.inbox import Inbox

__all__ = ("Service",)

F = TypeVar("F", bound="Callable[..., Any]")

GRACE_S = 5.0

NAMED_MAX = 10
"""Of a service's methods, where somebody asks for another one."""

WATCH_S = 0.5
"""How often `wait` looks whether the links stand."""

OF_PROCESS = (KeyboardInterrupt, GeneratorExit)
"""What no method fails with: somebody wants the process to end, or it ends and lets go of tasks."""

log = logging.getLogger("cogwork.client.rpc")


class Service:
    """Serves the methods of a topic; made by `Mesh.service`.

    Attributes:
        topic: What callers name.
        server: What callers name who mean this one.
        address: Where requests for this server come.
        options: What it has in common with others of the mesh.
        wheel: The deadlines of its work.
        time: The clock of these deadlines.
        works: What it is at work on.
        stamp: Application-properties that tell where it listens; None for nowhere.
    """

    stamp: dict[str, object] | None = None

    def __init__(
        self,
        mesh: Mesh,
        options: RpcOptions,
        topic: str,
        server: str,
        *,
        concurrency: int,
        exchange: str | None,
        grace_s: float,
        direct: Direct | None,
    ) -> None:
        """Does not serve yet.

        Args:
            mesh: Keeps it attached.
            options: Prefixes, codecs, what is settled.
            topic: What callers name.
            server: What callers name who mean this one.
            concurrency: Requests that are worked on at once.
            exchange: The second level of its addresses; None for the usual one.
            grace_s: How long work may go on when the service is stopped, in seconds.
            direct: Where to listen for callers that come directly; None for nowhere.

        Raises:
            ValueError: One of these cannot be.
        """
        if concurrency < 1:
            raise ValueError(f"concurrency: at least 1 is expected, not {concurrency!r:.80}")
        demand_seconds("grace_s", grace_s)
        loop = asyncio.get_running_loop()
        self.topic = topic
        self.server = server
        self.options = options
        self.address = options.server(topic, server, exchange)
        self.wheel = Wheel(loop)
        self.time = loop.time
        self.works = Works(concurrency, self._begin, mesh.core.flush)
        self._loop = loop
        self._mesh = mesh
        self._concurrency = concurrency
        self._grace_s = grace_s
        self._methods: dict[str | None, Method] = {}
        self._outlet = RoutedOutlet(mesh, options.reply_settled)
        self._inlets = [
            self._inlet(options.one_of(topic, exchange), MOVE),
            self._inlet(self.address, MOVE),
            self._inlet(options.every(topic, exchange), COPY),
        ]
        self._keyed = KeyedReplies(loop.time)
        self._is_stopping = False
        self._door = None if direct is None else Door(self, mesh, direct, exchange, concurrency)

    def _inlet(self, address: str, mode: Any) -> Inlet:  # noqa: ANN401  # a symbol
        window = 2 * self._concurrency  # topped up at the half: so many can always be under work
        return Inlet(self._mesh, address, mode, window=window, outlet=self._outlet, take=self.take)

    # -- methods

    @overload
    def method(self, function: F, /) -> F: ...

    @overload
    def method(self, function: F, /, *, name: str) -> F: ...

    @overload
    def method(self, /, *, name: str) -> Callable[[F], F]: ...

    def method(
        self, function: Callable[..., Any] | None = None, /, *, name: str | None = None
    ) -> Callable[..., Any]:
        """Lets callers run a function: a decorator, with or without a name.

        Args:
            function: `def` or `async def`; with `yield` where it replies in parts.
            name: What callers call it; None for the function's own name.

        Raises:
            TypeError: The function cannot be one, or the name is taken.
        """
        if function is None:
            return lambda given: self._add(given, name)
        return self._add(function, name)

    def _add(self, function: F, name: str | None) -> F:
        method = Method(function, name)
        if method.name in self._methods:
            raise TypeError(f"{method.name}: the service has a method of this name")
        self._methods[method.name] = method
        return function

    # -- life

    async def __aenter__(self) -> Self:
        await self._outlet.open()
        try:
            await asyncio.gather(*(inlet.open() for inlet in self._inlets))
            if self._door is not None:
                self.stamp = await self._door.open()
        except BaseException:
            await self._shut()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Takes no more requests, waits for what is under work, and cancels what takes too long."""
        self._is_stopping = True
        try:
            await self._quiesce()
        finally:  # whoever does not wait for it either leaves nothing running
            tasks = self.works.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._shut()

    async def _quiesce(self) -> None:
        """Takes no more requests, and waits for what is under work."""
        if self._door is not None:
            await self._door.close()
        await asyncio.gather(*(inlet.shut() for inlet in self._inlets), return_exceptions=True)
        self.works.cancel_waiting()
        try:
            await self.works.idle(self._grace_s)
        except TimeoutError:
            log.info("%s: work is cancelled after %g s", self.address, self._grace_s)

    async def _shut(self) -> None:
        self.wheel.close()
        if self._door is not None:
            self._door.end()
        await asyncio.gather(*(inlet.shut() for inlet in self._inlets))
        await self._outlet.close()

    async def wait(self) -> None:
        """Serves until it is cancelled, or one of its addresses is taken away.

        Raises:
            CogworkError: The container ended a link, or the mesh was closed.
        """
        while True:
            for inlet in self._inlets:
                if inlet.failure is not None:
                    raise inlet.failure
            await asyncio.sleep(WATCH_S)

    @property
    def running(self) -> int:
        """Counts the requests that are under work."""
        return self.works.running

    @property
    def waiting(self) -> int:
        """Counts the requests that wait because too many are under work."""
        return self.works.waiting

    # -- requests

    def take(self, inbox: Inbox, outlet: Outlet) -> None:
        """Takes what has arrived; called in the data plane's batch."""
        for request in inbox.take_now():
            try:
                if self._was_left(request) or not self._admit(inbox, outlet, request):
                    inbox.let_go(1)
            except Exception as error:  # hostile bytes must not keep back the others
                inbox.let_go(1)
                log.info("%s: a request cannot be read: %s", self.address, error)

    def _was_left(self, request: Message) -> bool:
        """Tells whether a call was cancelled before it came."""
        if not self.works.left:
            return False
        name = request.subject
        is_note = name is not None and name.startswith("$")
        return not is_note and self.works.was_left(request.reply_to, id_of(request))

    def _admit(self, inbox: Inbox, outlet: Outlet, request: Message) -> bool:
        """Has a request worked on; returns whether it counts as held from now on."""
        name = request.subject
        method = self._methods.get(name)
        reply_to = request.reply_to
        number = id_of(request)
        if method is None:
            if name is not None and name.startswith("$"):
                self._note(name, reply_to, number, request)
            else:
                text = f"{self.topic} has no method {name!r:.80}{_those_of(self._methods.values())}"
                self._refuse(outlet, reply_to, number, Condition.NOT_IMPLEMENTED, text)
            return False
        if self._is_stopping:
            self._refuse(outlet, reply_to, number, CALL_CANCELLED, "the server is being stopped")
            return False
        try:
            codec = codec_for(request.content_type)
            arguments = method.arguments(codec.decode(request.body))
        except WrongArgumentsError as error:
            self._refuse(outlet, reply_to, number, Condition.INVALID_FIELD, str(error))
            return False
        except (CogworkError, ValueError, RecursionError, TypeError) as error:
            text = f"{method.name}: the arguments cannot be read: {error or type(error).__name__}"
            self._refuse(outlet, reply_to, number, Condition.INVALID_FIELD, text)
            return False
        work = Work(
            self,
            inbox,
            outlet,
            request,
            reply_to=reply_to,
            number=number,
            method=method,
            arguments=arguments,
            codec=codec,
        )
        properties = request.properties
        if properties and not self._note_wishes(work, properties, outlet):
            return False
        self.works.take(work)
        return True

    def _note_wishes(self, work: Work, properties: dict[str, object], outlet: Outlet) -> bool:
        """Notes what a request asks besides; returns whether it is to be run."""
        key = properties.get(KEY)
        if isinstance(key, str):
            name = (work.method.name, key)
            is_new, reply = self._keyed.begin(name, (outlet, work.reply_to, work.number))
            if not is_new:
                if reply is not None:
                    _repeat(outlet, reply, work.reply_to, work.number)
                return False
            work.key = name
        work.wants_direct = DIRECT in properties
        lease_s = _seconds(properties.get(STREAM_S))
        beat_s = (lease_s or _seconds(properties.get(HEARTBEAT_S))) / BEATS
        credit = properties.get(CREDIT, 0)
        work.watch(beat_s, lease_s, credit if isinstance(credit, int) and credit > 0 else 0)
        return True

    def _note(
        self, name: str, reply_to: str | None, number: MessageId | None, request: Message
    ) -> None:
        """A caller says something of a call of its own."""
        work = self.works.find(reply_to, number)
        if name == CANCEL and work is None:
            self.works.leave(reply_to, number)
        elif name == CANCEL and work is not None:
            work.cancel()
        elif name == MORE and work is not None:
            work.grant(request)

    def _refuse(
        self,
        outlet: Outlet,
        reply_to: str | None,
        number: MessageId | None,
        condition: str,
        description: str,
    ) -> None:
        log.info("%s: %s", self.address, description)
        if reply_to is not None:
            reply = refusal_reply(condition, description)
            reply.to = reply_to
            reply.correlation_id = number
            outlet.send(reply)

    # -- running methods

    def _begin(self, work: Work) -> None:
        method = work.method
        token = CURRENT.set(work.context)
        try:
            if method.is_async or method.is_stream or work.is_streamed:
                self.works.know(work)
                run = self._run_parts if method.is_stream or work.is_streamed else self._run
                work.task = self._loop.create_task(run(work))
            else:
                self.run_plain(work)
        finally:
            CURRENT.reset(token)

    def run_plain(self, work: Work) -> None:
        """Runs a plain function."""
        try:
            result = work.method.function(**work.arguments)
        except KeyboardInterrupt:  # is meant for the process
            raise
        except BaseException as error:  # SystemExit too must not end the event loop
            work.fail(error)
        else:
            work.finish(result)

    async def _run(self, work: Work) -> None:
        try:
            result = await work.method.function(**work.arguments)
        except asyncio.CancelledError:
            work.cancel()
            raise
        except OF_PROCESS:
            raise
        except BaseException as error:
            work.fail(error)
        else:
            work.finish(result)

    async def _run_parts(self, work: Work) -> None:
        """Runs a method whose reply is taken in parts."""
        if not work.is_streamed:
            text = f"{work.method.name} replies in parts: use call_stream, or cogwork rpc --stream"
            work.refuse(Condition.INVALID_FIELD, text)
            return
        try:
            await self.send_parts(work)
        except asyncio.CancelledError:
            work.cancel()
            raise
        except OF_PROCESS:
            raise
        except BaseException as error:
            work.fail(error)
        else:
            work.finish_parts()

    async def send_parts(self, work: Work) -> None:
        """Sends what a method yields, or the one thing that it returns."""
        made = work.method.function(**work.arguments)
        if inspect.isasyncgen(made):
            try:
                async for value in made:
                    await work.part(value)
            finally:
                await made.aclose()
        elif inspect.isgenerator(made):
            try:
                for value in made:
                    await work.part(value)
            finally:
                made.close()
        else:
            await work.part(await made if inspect.isawaitable(made) else made)

    def keep(self, key: tuple[str, str], reply: Message | None) -> None:
        """Keeps the reply to a call that has a key, and sends it to whoever repeated the call.

        Where there is none, for the call was ended, they hear of that: it may be made again.
        """
        encoded = None if reply is None else reply.encode()
        for outlet, reply_to, number in self._keyed.finish(key, encoded):
            if encoded is not None:
                _repeat(outlet, encoded, reply_to, number)
            else:
                text = (
                    "the call that this one repeats has ended without a reply: it may be made again"
                )
                self._refuse(outlet, reply_to, number, CALL_CANCELLED, text)


def _those_of(methods: Iterable[Method]) -> str:
    """Says what methods there are, as far as a line has room."""
    names = sorted(each.name for each in methods)
    more = ", …" if len(names) > NAMED_MAX else ""
    return f": it has {', '.join(names[:NAMED_MAX])}{more}" if names else ""


def _seconds(value: object) -> float:
    """Returns a time that a caller asks for; 0 where it is none that makes sense."""
    return float(value) if isinstance(value, (int, float)) and 0.01 <= value <= 1e6 else 0.0


def _repeat(outlet: Outlet, reply: bytes, reply_to: str | None, number: MessageId | None) -> None:
    if reply_to is not None:
        message = Message.decode(reply)
        message.to = reply_to
        message.correlation_id = number
        try:
            outlet.send(message)
        except MessageTooLarge as error:
            refusal = refusal_reply(Condition.LINK_MESSAGE_SIZE_EXCEEDED, f"the result: {error}")
            refusal.to, refusal.correlation_id = reply_to, number
            outlet.send(refusal)

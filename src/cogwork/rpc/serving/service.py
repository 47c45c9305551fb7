"""The serving half of RPC: requests arrive, methods run side by side, replies leave.

Theory of operation. A service has three receiving links: of those addressed to one server of its
topic, to itself, and to all servers. Requests are taken in the data plane's own batch; a plain
function runs there and then, and its reply leaves with that batch, so it must not block. A
coroutine function runs in a task. Senders get credit for as much as can begin (`window.py`): what
is more waits with them, or turns to other servers. A request stays unsettled until its work is
done, so that callers hear at once of a server that is lost. What is late is not begun; nor is,
while there is more to do than can be done, what is likely to be late (`pace.py`).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp.terminus import COPY, MOVE
from cogwork.client.checks import demand_seconds
from cogwork.dataplane.client.posting_errors import MessageTooLarge
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.codec import codec_for
from cogwork.rpc.direct.door import Door
from cogwork.rpc.direct.meeting import DIRECT
from cogwork.rpc.errors import CALL_CANCELLED, CALL_EXPIRED, NOT_BEGUN
from cogwork.rpc.serving.context import CURRENT
from cogwork.rpc.serving.intercepted import intercepted
from cogwork.rpc.serving.keyed import KeyedReplies
from cogwork.rpc.serving.method import Method, WrongArgumentsError
from cogwork.rpc.serving.pace import LongestWait
from cogwork.rpc.serving.reply_sender import RoutedReplySender
from cogwork.rpc.serving.request_queue import SLICE_S, RequestQueue
from cogwork.rpc.serving.request_receiver import RequestReceiver
from cogwork.rpc.serving.request_task import BEATS, LATE, RequestTask
from cogwork.rpc.serving.window import Window
from cogwork.rpc.wheel import Wheel
from cogwork.rpc.wire import (
    CANCEL,
    CREDIT,
    HEARTBEAT_S,
    KEY,
    MORE,
    STREAM_S,
    id_of,
    refusal_reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.amqp.message import MessageId
    from cogwork.amqp.types import Symbol
    from cogwork.client.call_options import Direct, RpcOptions
    from cogwork.dataplane.client.request_inbox import RequestInbox
    from cogwork.rpc.client_context import RpcContext
    from cogwork.rpc.serving.reply_sender import ReplySender

__all__ = ("Service",)

F = TypeVar("F", bound="Callable[..., Any]")

DRAIN_S = 1.0
"""How long a container may take to send what is on its way when a service stops, or to find another
server for a cast."""

NOTES = frozenset({CANCEL, MORE})
"""What is said of a call under way; any other name that begins with `$` is no method."""

NOTABLE_S = 0.001
"""What takes less need not be known better."""

NAMED_MAX = 10
"""Of a service's methods, where somebody asks for another one."""

WATCH_S = 0.5
"""How often `wait` looks whether the links stand."""

OF_PROCESS = (KeyboardInterrupt, GeneratorExit)
"""What no method fails with: somebody wants the process to end, or it ends and lets go of tasks."""

log = logging.getLogger("cogwork.client.rpc")


class Service:
    """Serves the methods of a topic; made by `Client.service`.

    Attributes:
        topic: What callers name.
        server: What callers name who mean this one.
        address: Where requests for this server come.
        options: What it has in common with others of the client.
        wheel: The deadlines of its work.
        time: The clock of these deadlines.
        request_queue: What it is at work on.
        window: The credit of its links.
        stamp: Application-properties that tell where it listens; None for nowhere.
        runs_beside: Whether plain functions run beside the event loop.
    """

    stamp: dict[str, object] | None = None
    runs_beside = False

    def __init__(
        self,
        client: RpcContext,
        options: RpcOptions,
        topic: str,
        server: str,
        *,
        concurrency: int,
        exchange: str | None,
        grace_s: float,
        direct: Direct | None,
    ) -> None:
        """Initialize it; it does not serve yet.

        Args:
            client: Keeps it attached.
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
        self.request_queue = RequestQueue(
            concurrency,
            begin=self._begin,
            ended=self._give_room,
            flush=client.core.flush,
            loop=loop,
        )
        self.window = Window(lambda: self.request_queue.load)
        self._loop = loop
        self._client = client
        self._concurrency = concurrency
        self._grace_s = grace_s
        self._methods: dict[str | None, Method] = {}
        self._sender = RoutedReplySender(client, options.reply_settled)
        self._receivers = [
            self._receiver(options.one_of(topic, exchange), MOVE, is_shared=True),
            self._receiver(self.address, MOVE),
            self._receiver(options.every(topic, exchange), COPY),
        ]
        self._topic_address = options.one_of(topic, exchange)
        self._longest = LongestWait()
        self._keyed = KeyedReplies(loop.time)
        self._has_waiting = False
        self._is_stopping = False
        self._is_taking = False
        self._door = None if direct is None else Door(self, client, direct, exchange)

    def _receiver(self, address: str, mode: Symbol, *, is_shared: bool = False) -> RequestReceiver:
        return RequestReceiver(
            self._client,
            address,
            mode,
            is_shared=is_shared,
            is_exclusive=address == self.address,
            window=self.window,
            sender=self._sender,
            take=self.take,
        )

    def _limit(self) -> int:
        """Return how many requests may be there at once.

        Where all methods are plain functions that run there and then, nothing is under work when
        the next ones come: more may be on their way, as long as they are done in a moment.
        """
        if self.runs_beside or self._has_waiting:
            return self._concurrency
        limit = 2 * self._concurrency
        if self.request_queue.begin_s * limit > SLICE_S:
            limit = max(1, int(SLICE_S / self.request_queue.begin_s))
        return limit

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
        """Let callers run a function: a decorator, with or without a name.

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
        if (interceptors := self._client.interceptors) is not None:
            method.function = intercepted(
                function, interceptors, self.topic, self.server, method.name
            )
        self._methods[method.name] = method
        self._has_waiting = self._has_waiting or method.is_async or method.is_stream
        return function

    # -- life

    async def __aenter__(self) -> Self:
        await self._sender.open()
        self.window.limit = self._limit()
        try:
            await asyncio.gather(*(receiver.open() for receiver in self._receivers))
            if self._door is not None:
                self.stamp = await self._door.open()
        except BaseException:
            await self._shut()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Take no more requests, works off what is there, and cancel what takes too long.

        What has not begun when the grace is over is handed back, for other servers.
        """
        self._is_stopping = True
        try:
            await self._quiesce()
        finally:  # whoever does not wait for it either leaves nothing running
            tasks = self.request_queue.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._shut()

    async def _quiesce(self) -> None:
        """Take no more requests, and wait for those that are there."""
        if self._door is not None:
            await self._door.close()
        with suppress(TimeoutError):  # a container that does not answer has nothing to send
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(*(receiver.inbox.stop() for receiver in self._receivers[:2]))
        try:
            await self.request_queue.idle(self._grace_s)
        except TimeoutError:
            log.info("%s: cancelling unfinished calls after %g s", self.address, self._grace_s)

    def pass_on(self, request: Message) -> None:
        """Send a request that nobody waits for to another server of the topic."""
        if self._client.is_connected:
            self._client.spawn(self._pass_on(request))

    async def _pass_on(self, request: Message) -> None:
        try:
            await self._client.send_own(self._topic_address, request, timeout_s=DRAIN_S)
        except CogworkError as error:
            log.warning("%s: lost a cast that had not started: %s", self.address, error)

    async def _shut(self) -> None:
        self.wheel.close()
        if self._door is not None:
            self._door.end()
        await asyncio.gather(*(receiver.shut() for receiver in self._receivers))
        await self._sender.close()

    async def wait(self) -> None:
        """Serve until it is cancelled, or one of its addresses is taken away.

        Raises:
            CogworkError: The container ended a link, or the client was closed.
        """
        while True:
            for receiver in self._receivers:
                if receiver.failure is not None:
                    raise receiver.failure
            await asyncio.sleep(WATCH_S)

    @property
    def running(self) -> int:
        """Counts the requests that are under work."""
        return self.request_queue.running

    @property
    def waiting(self) -> int:
        """Counts the requests that wait because too many are under work."""
        return self.request_queue.waiting

    # -- requests

    def take(self, inbox: RequestInbox, sender: ReplySender) -> None:
        """Take what has arrived; called in the data plane's batch."""
        arrivals = inbox.take_now()
        inbox.let_go(len(arrivals))
        now_s = self.time()
        self._is_taking = True
        for request, delivery_id in arrivals:
            try:
                is_admitted = not self._was_left(request) and self._admit(
                    inbox, sender, request, delivery_id, now_s
                )
            except Exception as error:  # hostile bytes must not keep back the others
                is_admitted = False
                log.info("%s: cannot read a request: %s", self.address, error)
            if not is_admitted and delivery_id is not None:
                inbox.settle_request(inbox.link, delivery_id, True)
        self._is_taking = False
        self._give_room()

    def _give_room(self) -> None:
        """Let as many requests come as there is room for now; a batch says so at its end."""
        if not self._is_taking:
            self.window.limit = self._limit()
            self.window.update()

    def _was_left(self, request: Message) -> bool:
        """Return whether a call was cancelled before it came."""
        if not self.request_queue.left:
            return False
        name = request.subject
        is_note = name is not None and name.startswith("$")
        return not is_note and self.request_queue.was_left(request.reply_to, id_of(request))

    def _admit(
        self,
        inbox: RequestInbox,
        sender: ReplySender,
        request: Message,
        delivery_id: int | None,
        now_s: float,
    ) -> bool:
        """Have a request worked on, which settles it; return whether that is so."""
        name = request.subject
        method = self._methods.get(name)
        reply_to = request.reply_to
        number = id_of(request)
        if method is None:
            self._take_unknown(name, sender, reply_to, number, request)
            return False
        ttl_s = request.ttl_s
        deadline_s = None if ttl_s is None else now_s + ttl_s
        condition, why = self._hindrance(method, deadline_s, now_s, has_reply=reply_to is not None)
        if why:
            self._refuse(sender, reply_to, number, condition, why)
            return False
        try:
            codec = codec_for(request.content_type)
            arguments = method.arguments(codec.decode(request.body))
        except WrongArgumentsError as error:
            self._refuse(sender, reply_to, number, Condition.INVALID_FIELD, str(error))
            return False
        except (CogworkError, ValueError, RecursionError, TypeError) as error:
            text = f"{method.name}: the arguments cannot be read: {error or type(error).__name__}"
            self._refuse(sender, reply_to, number, Condition.INVALID_FIELD, text)
            return False
        task = RequestTask(
            self,
            inbox,
            sender,
            request,
            delivery_id=delivery_id,
            deadline_s=deadline_s,
            reply_to=reply_to,
            number=number,
            method=method,
            arguments=arguments,
            codec=codec,
        )
        properties = request.properties
        if properties and not self._note_wishes(task, properties, sender):
            return not task.is_over  # one that waits for another one's reply is settled with that
        self.request_queue.take(task)
        return True

    def _take_unknown(
        self,
        name: str | None,
        sender: ReplySender,
        reply_to: str | None,
        number: MessageId | None,
        request: Message,
    ) -> None:
        """Take a note on a call, or refuse a method that there is none of."""
        if name in NOTES and request.correlation_id is not None:
            self._note(str(name), reply_to, number, request)
        else:
            text = f"{self.topic} has no method {name!r:.80}{_those_of(self._methods.values())}"
            self._refuse(sender, reply_to, number, Condition.NOT_IMPLEMENTED, text)

    def _hindrance(
        self, method: Method, deadline_s: float | None, now_s: float, *, has_reply: bool
    ) -> tuple[str, str]:
        """Tell why a request is not even read: a condition and a text, which is empty for none."""
        if self._is_stopping and has_reply:
            return NOT_BEGUN, "the server is being stopped, and has not begun the call"
        if deadline_s is not None:
            self._longest.note(deadline_s - now_s, now_s)
            why = self._lateness(method, deadline_s)
            if why is not None:
                return CALL_EXPIRED, why
        return "", ""

    def _lateness(self, method: Method, deadline_s: float) -> str | None:
        """Return why a call is too late to be begun; None where it is not."""
        now_s = self.time()
        remaining_s = deadline_s - now_s
        if remaining_s <= 0:
            return LATE
        if not self.request_queue.is_pressed(now_s):
            return None
        if remaining_s >= min(method.pace.needed_s, self._longest.bound_s):
            return None
        return (
            f"the server is full, and {remaining_s:.3f} s are left of a call"
            f" to a method that takes {method.pace.mean_s:.3f} s"
        )

    def _note_wishes(
        self, task: RequestTask, properties: dict[str, object], sender: ReplySender
    ) -> bool:
        """Note what a request asks besides; return whether it is to be run."""
        key = properties.get(KEY)
        if isinstance(key, str):
            name = (task.method.name, key)
            asker = (sender, task.reply_to, task.number, task.settle)
            is_new, reply = self._keyed.begin(name, asker)
            if not is_new:
                if reply is not None:
                    _repeat(sender, reply, task.reply_to, task.number)
                    task.is_over = True
                return False
            task.key = name
        task.wants_direct = DIRECT in properties
        lease_s = _seconds(properties.get(STREAM_S))
        beat_s = (lease_s or _seconds(properties.get(HEARTBEAT_S))) / BEATS
        credit = properties.get(CREDIT, 0)
        task.watch(beat_s, lease_s, credit if isinstance(credit, int) and credit > 0 else 0)
        return True

    def _note(
        self, name: str, reply_to: str | None, number: MessageId | None, request: Message
    ) -> None:
        """A caller says something of a call of its own."""
        task = self.request_queue.find(reply_to, number)
        if name == CANCEL and task is None:
            self.request_queue.leave(reply_to, number)
        elif name == CANCEL and task is not None:
            task.cancel()
        elif name == MORE and task is not None:
            task.grant(request)

    def _refuse(
        self,
        sender: ReplySender,
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
            sender.send(reply)

    # -- running methods

    def _begin(self, task: RequestTask) -> None:
        method = task.method
        if task.is_watched and task.deadline_s is not None and not task.is_streamed:
            why = self._lateness(method, task.deadline_s)
            if why is not None:
                task.refuse(CALL_EXPIRED, why)
                return
        task.begin()
        token = CURRENT.set(task.context)
        try:
            if method.is_async or method.is_stream or task.is_streamed:
                self.request_queue.know(task)
                run = self._run_parts if method.is_stream or task.is_streamed else self._run
                task.runner = self._loop.create_task(run(task))
            else:
                self.run_plain(task)
        finally:
            CURRENT.reset(token)

    def run_plain(self, task: RequestTask) -> None:
        """Run a plain function."""
        try:
            result = task.method.function(**task.arguments)
        except KeyboardInterrupt:  # is meant for the process
            raise
        except BaseException as error:  # SystemExit too must not end the event loop
            task.fail(error)
        else:
            if self.request_queue.begin_s > NOTABLE_S:
                task.note_pace()
            task.finish(result)

    async def _run(self, task: RequestTask) -> None:
        try:
            result = await task.method.function(**task.arguments)
        except asyncio.CancelledError:
            task.cancel()
            raise
        except OF_PROCESS:
            raise
        except BaseException as error:
            task.fail(error)
        else:
            task.note_pace()
            task.finish(result)

    async def _run_parts(self, task: RequestTask) -> None:
        """Run a method whose reply is taken in parts."""
        if not task.is_streamed:
            text = f"{task.method.name} replies in parts: use call_stream, or cogwork rpc --stream"
            task.refuse(Condition.INVALID_FIELD, text)
            return
        try:
            await self.send_parts(task)
        except asyncio.CancelledError:
            task.cancel()
            raise
        except OF_PROCESS:
            raise
        except BaseException as error:
            task.fail(error)
        else:
            task.finish_parts()

    async def send_parts(self, task: RequestTask) -> None:
        """Send what a method yields, or the one thing that it returns."""
        made = task.method.function(**task.arguments)
        if inspect.isasyncgen(made):
            try:
                async for value in made:
                    await task.part(value)
            finally:
                await made.aclose()
        elif inspect.isgenerator(made):
            try:
                for value in made:
                    await task.part(value)
            finally:
                made.close()
        else:
            await task.part(await made if inspect.isawaitable(made) else made)

    def keep(self, key: tuple[str, str], reply: Message | None) -> None:
        """Keep the reply to a call that has a key, and send it to whoever repeated the call.

        Where there is none, for the call was ended, they hear of that: it may be made again.
        """
        encoded = None if reply is None else reply.encode()
        for sender, reply_to, number, settle in self._keyed.finish(key, encoded):
            settle()
            if encoded is not None:
                _repeat(sender, encoded, reply_to, number)
            else:
                text = (
                    "the call that this one repeats has ended without a reply: it may be made again"
                )
                self._refuse(sender, reply_to, number, CALL_CANCELLED, text)


def _those_of(methods: Iterable[Method]) -> str:
    """Return what methods there are, as far as a line has room."""
    names = sorted(each.name for each in methods)
    more = ", …" if len(names) > NAMED_MAX else ""
    return f": it has {', '.join(names[:NAMED_MAX])}{more}" if names else ""


def _seconds(value: object) -> float:
    """Return a time that a caller asks for; 0 where it is none that makes sense."""
    return float(value) if isinstance(value, (int, float)) and 0.01 <= value <= 1e6 else 0.0


def _repeat(
    sender: ReplySender, reply: bytes, reply_to: str | None, number: MessageId | None
) -> None:
    if reply_to is not None:
        message = Message.decode(reply)
        message.to = reply_to
        message.correlation_id = number
        try:
            sender.send(message)
        except MessageTooLarge as error:
            refusal = refusal_reply(Condition.LINK_MESSAGE_SIZE_EXCEEDED, f"the result: {error}")
            refusal.to, refusal.correlation_id = reply_to, number
            sender.send(refusal)

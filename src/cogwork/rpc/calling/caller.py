"""The calling half of RPC: one a client.

Theory of operation. A call costs one message there and one back, no task and no timer of its own.
It is encoded before anything is waited for, so that what cannot be carried is refused at once, or,
where it is large, as soon as it is known how much is carried; it leaves on a link to the address
itself, and waits there as long as the container gives no credit, which is how it looks when nobody
serves the address. Its reply is matched by a random id in the data plane's own batch (`Replies`),
and the future that the caller awaits is done within that batch.

Whoever leaves a call before its reply says so to the server that has it, or, where that is not
known, to all of the topic: the work is cancelled there.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from cogwork.amqp.errors import CogworkError
from cogwork.client.checks import demand_seconds
from cogwork.client.errors import CallTimeout, InDoubt, Released
from cogwork.client.loop_affinity import check_loop
from cogwork.client.requests.correlation import correlation_ids
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.calling.call import Call, NotSent
from cogwork.rpc.calling.request import Request
from cogwork.rpc.calling.route import Route
from cogwork.rpc.calling.sending import send
from cogwork.rpc.codec import Codec, codec_for, codec_named
from cogwork.rpc.conversion import converted
from cogwork.rpc.direct.directory import Directory
from cogwork.rpc.direct.meeting import DIRECT
from cogwork.rpc.errors import BadReply, Unreachable
from cogwork.rpc.wheel import Wheel
from cogwork.rpc.wire import CANCEL, HEARTBEAT_S, KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.client.call_options import RpcOptions
    from cogwork.rpc.calling.replies import Replies
    from cogwork.rpc.calling.targets import Target
    from cogwork.rpc.client_context import RpcContext

__all__ = ("Caller",)


class Caller:
    """Calls, casts and fanouts of one client.

    Attributes:
        options: What they have in common.
        wheel: Their deadlines.
        time: The clock of their deadlines.
        routed: The way through the mesh.
        directory: The servers that can be reached without a hop; None where none are to be.
    """

    def __init__(self, client: RpcContext, options: RpcOptions) -> None:
        """Initialize it; it has asked nothing yet.

        Args:
            client: Connected.
            options: What calls have in common.
        """
        loop = asyncio.get_running_loop()
        self.options = options
        self.wheel = Wheel(loop)
        self.routed = Route(client, self.wheel)
        self.directory: Directory | None = None
        self._client = client
        self.time = self._time = loop.time
        self._codec = codec_named(options.codec)
        self._ids = correlation_ids()

    def go_direct(self) -> None:
        """Have calls go to servers without a hop where that is possible."""
        self.directory = Directory(self._client, self)

    async def close(self) -> None:
        """Wait for nothing any more."""
        self.wheel.close()
        if self.directory is not None:
            await self.directory.close()

    def next_id(self) -> str:
        """Return an id that no other call has, and nobody can guess."""
        return next(self._ids)

    def codec(self, name: str | None) -> Codec:
        """Return the codec of a name; None for the usual one."""
        return self._codec if name is None else codec_named(name)

    def request(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        *,
        server: str | None,
        timeout_s: float | None,
        exchange: str | None,
        codec: str | None,
        properties: dict[str, object] | None = None,
    ) -> Request:
        """Make a request to a server, or to one of a topic.

        Raises:
            Unserialisable: An argument cannot be carried.
        """
        check_loop(self._client)
        options = self.options
        if server is None:
            address = options.one_of(topic, exchange)
        else:
            address = options.server(topic, server, exchange)
        return Request(
            address,
            method,
            arguments=arguments,
            codec=self._codec if codec is None else codec_named(codec),
            timeout_s=options.timeout_s if timeout_s is None else timeout_s,
            properties=properties,
            topic=topic if server is None else None,
            exchange=exchange,
        )

    # -- call

    async def call(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        *,
        server: str | None,
        timeout_s: float | None,
        exchange: str | None,
        codec: str | None,
        settled: bool | None,
        heartbeat_s: float | None,
        key: str | None,
        result: Any,  # noqa: ANN401  # any type
        properties: dict[str, object] | None = None,
    ) -> Any:  # noqa: ANN401  # what the method returns
        """Call a method; see `Client.call`."""
        demand_seconds("heartbeat_s", heartbeat_s)
        if heartbeat_s is not None or key is not None:
            wishes = {HEARTBEAT_S: heartbeat_s, KEY: key}
            properties = {name: value for name, value in wishes.items() if value is not None} | (
                properties or {}
            )
        request = self.request(
            topic,
            method,
            arguments,
            server=server,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
            properties=properties,
        )
        is_settled = self.options.call_settled if settled is None else settled
        deadline_s = self._time() + request.timeout_s
        doubt: InDoubt | None = None
        waits_s = self.options.retry.waits_s(random.random)
        while True:
            try:
                reply = await self._attempt(request, deadline_s, heartbeat_s, is_settled)
            except NotSent:
                continue
            except InDoubt as error:
                # With a key, the same server knows whether it has done it before.
                if key is None or server is None or self._time() >= deadline_s:
                    raise
                doubt = error
                continue
            except Released as error:  # no server has begun it: another one may
                wait_s = next(waits_s)
                if isinstance(error, Unreachable) or self._time() + wait_s >= deadline_s:
                    if doubt is None:
                        raise
                    raise doubt from error  # the server was not there to ask
                await asyncio.sleep(wait_s)
                continue
            return _result(request.address, reply, result)

    async def _attempt(
        self, request: Request, deadline_s: float, heartbeat_s: float | None, settled: bool
    ) -> Message:
        route, address = self.routed, request.address
        directory = self.directory
        if directory is not None:
            route, address = directory.at_hand(address) or await self.way(request)
        target = route.targets.get(address)
        replies = route.replies
        if target is None or replies is None or not replies.reply_to:
            target, replies = await self.open(route, address, request, deadline_s)
        now_s = self._time()
        call = Call(
            route.client.turn.waiter(),
            address=request.address,
            target=target,
            wheel=self.wheel,
            deadline_s=deadline_s,
            timeout_s=request.timeout_s,
            heartbeat_s=heartbeat_s,
            now_s=now_s,
        )
        call_id = self.next_id()
        replies.calls[call_id] = call
        try:
            try:
                call.post = target.post(
                    request.message(
                        call_id,
                        replies.reply_to,
                        max(deadline_s - now_s, 0.001),
                        target.size_bytes_max,
                    ),
                    settled=settled,
                )
            except Exception as error:
                raise self._refusal(route, address, request, error) from error
            if len(replies.calls) == 1:
                route.client.core.flush()  # there is nothing to be sent with: it need not wait
            call.watch()  # what need not be done before it is sent is done after that
            if not settled:
                call.post.on_error = call.on_outcome
            if route.looks_for(call):
                await asyncio.sleep(0)  # others have their turn, as with any other call
            reply: Message = await call.future
        except (asyncio.CancelledError, CallTimeout):
            if not call.withdraw():
                whom = call.server or self.everyone(route, address, request)
                self.cancel(route, whom, call_id, replies.reply_to)
            raise
        finally:
            del replies.calls[call_id]
            call.end()
        if directory is not None and route is self.routed:
            directory.learn(reply)
        return reply

    def everyone(self, route: Route, address: str, request: Request) -> str:
        """Return where those are of whom one has a call, as long as nobody knows which."""
        if route is not self.routed:
            return address
        if request.topic is None:
            return request.address
        return self.options.every(request.topic, request.exchange)

    async def way(self, request: Request) -> tuple[Route, str]:
        """Return the way of a request, and the address there."""
        directory = self.directory
        if directory is not None:
            directory.follow(request.exchange)
            found = directory.at_hand(request.address) or await directory.way(request.address)
            if found is not None:
                return found
            request.properties = {**(request.properties or {}), DIRECT: True}
        return self.routed, request.address

    def _refusal(self, route: Route, address: str, request: Request, error: Exception) -> Exception:
        """Return what it means that a request could not be posted."""
        if route is not self.routed and isinstance(error, ConnectionError):
            return self.not_direct(address)
        return request.refusal(error)

    def not_direct(self, address: str) -> NotSent:
        """Note that a direct way does not stand; the request has to go another one."""
        if self.directory is not None:
            self.directory.failed(address)
        return NotSent(f"{address}: not reached directly")

    async def open(
        self, route: Route, address: str, request: Request, deadline_s: float
    ) -> tuple[Target, Replies]:
        """Open what the first call to an address needs, within its time.

        Raises:
            Unreachable: There is no connection that long.
        """
        try:
            async with asyncio.timeout(max(deadline_s - self._time(), 0)):
                return await route.open(address)
        except TimeoutError:
            raise Unreachable(request.address, request.timeout_s) from None
        except CogworkError as error:
            if route is self.routed:
                raise
            raise self.not_direct(address) from error

    def cancel(self, route: Route, address: str, call_id: str, reply_to: str) -> None:
        """Have the work for a call cancelled, wherever it is done."""
        note = Message(None, subject=CANCEL, correlation_id=call_id, reply_to=reply_to)
        self.tell(route, address, note)

    def tell(self, route: Route, address: str, note: Message) -> None:
        """Send something about a call under way, and go on."""
        if route.client.is_connected:
            self._client.spawn(self._told(route, address, note))

    async def _told(self, route: Route, address: str, note: Message) -> None:
        try:
            note.to = address
            target = route.targets.get(address)
            is_routed = route is self.routed
            if target is not None and (is_routed or target.has_credit):
                target.post(note, settled=True)
            elif is_routed or target is not None:  # a busy server takes notes by the mesh
                await self._client.send_own(address, note, settled=True)
        except CogworkError:
            return  # there is nobody to be told any more

    # -- cast and fanout

    async def cast(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        *,
        server: str | None,
        timeout_s: float | None,
        exchange: str | None,
        codec: str | None,
        settled: bool | None,
        ttl_s: float | None,
        key: str | None,
        properties: dict[str, object] | None = None,
    ) -> None:
        """Send a request that has no reply; see `Client.cast`."""
        request = self.request(
            topic,
            method,
            arguments,
            server=server,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
            properties=properties,
        )
        if key is not None:
            request.properties = {**(request.properties or {}), KEY: key}
        is_settled = self.options.cast_settled if settled is None else settled
        await self._send(request, is_settled, ttl_s)

    async def fanout(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        *,
        timeout_s: float | None,
        exchange: str | None,
        codec: str | None,
        settled: bool | None,
        ttl_s: float | None,
        properties: dict[str, object] | None = None,
    ) -> None:
        """Send a request to all servers of a topic; see `Client.fanout`."""
        address = self.options.every(topic, exchange)
        limit_s = self.options.timeout_s if timeout_s is None else timeout_s
        request = Request(
            address,
            method,
            arguments=arguments,
            codec=self.codec(codec),
            timeout_s=limit_s,
            properties=properties,
        )
        is_settled = self.options.fanout_settled if settled is None else settled
        try:
            await self._send(request, is_settled, ttl_s)
        except Released as error:
            if isinstance(error, Unreachable):
                raise
            # Every server that there is has it: there is none.

    async def _send(self, request: Request, settled: bool, ttl_s: float | None) -> None:
        deadline_s = self._time() + request.timeout_s
        target = self.routed.targets.get(request.address)
        if target is None:
            try:
                async with asyncio.timeout(request.timeout_s):
                    target = await self.routed.targets.open(request.address)
            except TimeoutError:
                raise Unreachable(request.address, request.timeout_s) from None
        try:
            message = request.message(None, None, ttl_s, target.size_bytes_max).encode()
        except Exception as error:
            raise request.refusal(error) from error
        await send(
            target,
            message,
            settled=settled,
            deadline_s=deadline_s,
            timeout_s=request.timeout_s,
            retry=self.options.retry,
        )


def _result(address: str, reply: Message, result: Any) -> Any:  # noqa: ANN401  # any type
    """Return what a method has returned.

    Raises:
        BadReply: That cannot be told.
    """
    try:
        content_type = reply.content_type
        if content_type is None and result is None:
            return reply.body
        value = codec_for(content_type).decode(reply.body)
        return value if result is None else converted(value, result)
    except Exception as error:
        raise BadReply(address, None, f"the reply: {error or type(error).__name__}") from error

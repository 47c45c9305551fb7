"""What a client has of RPC: the methods by which applications call and serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cogwork.client.checks import demand_seconds
from cogwork.client.rpc.arguments import arguments_of
from cogwork.client.rpc.caller import Caller
from cogwork.client.rpc.direct.options import Direct
from cogwork.client.rpc.part_stream import PartStream
from cogwork.client.rpc.parts import WINDOW, Parts
from cogwork.client.rpc.service import GRACE_S, Service
from cogwork.client.rpc.threaded import ThreadedService
from cogwork.client.rpc.wire import CREDIT, STREAM_S

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from cogwork.client.client import Client
    from cogwork.client.options import Options

__all__ = ("RpcCalls",)


class RpcCalls:
    """The half of a client that calls and serves methods.

    Arguments are given as keywords; where one has the name of an option, with its `_s` or without,
    in `arguments`.
    """

    _options: Options
    _caller: Caller | None = None

    @property
    def rpc(self) -> Caller:
        """The calling half of RPC."""
        if self._caller is None:
            self._caller = Caller(cast("Client", self), self._options.rpc)
        return self._caller

    def _begin_calls(self) -> None:
        if self._options.direct is not None:
            self.rpc.go_direct()

    async def _end_calls(self) -> None:
        if self._caller is not None:
            await self._caller.close()

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
        """Calls a method of one server of a topic, and returns what it returns.

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
        """Has a method run by one server of a topic, and does not wait for it.

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
        given = arguments_of(keywords, arguments, "timeout", "ttl")
        request = self.rpc.request(
            topic,
            method,
            given,
            server=server,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
        )
        await self.rpc.cast(request, settled, ttl_s, idempotency_key)

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
        """Has a method run by every server of a topic that there is, and does not wait for it.

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
    ) -> PartStream:
        """Calls a method that yields, and iterates what it yields; leaving cancels the work.

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
        rpc = self.rpc
        demand_seconds("timeout_s", timeout_s)
        lease_s = rpc.options.timeout_s if timeout_s is None else timeout_s
        properties: dict[str, object] = {STREAM_S: float(lease_s), CREDIT: window}
        given = arguments_of(keywords, arguments, "timeout")
        request = rpc.request(
            topic,
            method,
            given,
            server=server,
            timeout_s=lease_s,
            exchange=exchange,
            codec=codec,
            properties=properties,
        )
        is_settled = rpc.options.call_settled if settled is None else settled
        return PartStream(Parts(rpc, request, window=window, result=result, settled=is_settled))

    def service(
        self,
        topic: str,
        *,
        server: str | None = None,
        concurrency: int = 64,
        exchange: str | None = None,
        grace_s: float = GRACE_S,
        direct: Direct | bool | None = None,
    ) -> Service:
        """Serves methods; use it in `async with`.

        Args:
            topic: What callers name.
            server: What callers name who mean this one; None for the name of this client.
            concurrency: Calls that are worked on at once; more of them wait.
            exchange: The second level of its addresses; None for the usual one.
            grace_s: How long work may go on when the service is stopped, in seconds.
            direct: Where to listen for calls that come without a hop; None as the client does.
        """
        own = self._options.name if server is None else server
        return Service(
            cast("Client", self),
            self._options.rpc,
            topic,
            own,
            concurrency=concurrency,
            exchange=exchange,
            grace_s=grace_s,
            direct=self._direct(direct),
        )

    def _direct(self, direct: Direct | bool | None) -> Direct | None:
        if direct is None:
            return self._options.direct
        return (self._options.direct or Direct()) if direct is True else direct or None

    def threaded_service(
        self,
        topic: str,
        *,
        server: str | None = None,
        concurrency: int = 16,
        exchange: str | None = None,
        grace_s: float = GRACE_S,
        direct: Direct | bool | None = None,
    ) -> ThreadedService:
        """Serves methods that may block, in threads; see `service`.

        Args:
            topic: What callers name.
            server: What callers name who mean this one; None for the name of this client.
            concurrency: Threads, and so calls that are worked on at once.
            exchange: The second level of its addresses; None for the usual one.
            grace_s: How long work may go on when the service is stopped, in seconds.
            direct: Where to listen for calls that come without a hop; None as the client does.
        """
        own = self._options.name if server is None else server
        return ThreadedService(
            cast("Client", self),
            self._options.rpc,
            topic,
            own,
            concurrency=concurrency,
            exchange=exchange,
            grace_s=grace_s,
            direct=self._direct(direct),
        )

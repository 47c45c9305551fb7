"""The calls and services of one client: implements `cogwork.client.calls.Calls`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from cogwork.client.call_options import Direct
from cogwork.client.checks import demand_seconds
from cogwork.rpc.calling.caller import Caller
from cogwork.rpc.calling.parts import Parts, PartStream
from cogwork.rpc.serving.service import Service
from cogwork.rpc.serving.threaded import ThreadedService
from cogwork.rpc.wire import CREDIT, STREAM_S

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from cogwork.client.call_options import RpcOptions
    from cogwork.client.calls import (
        FanoutOptions,
        ServiceOptions,
        StreamOptions,
    )
    from cogwork.rpc.client_context import RpcContext

__all__ = ("ClientCalls",)

S = TypeVar("S", bound=Service)


class ClientCalls:
    """What a client has of RPC."""

    def __init__(self, client: RpcContext, options: RpcOptions, direct: Direct | None) -> None:
        """Initialize it; it has called nothing yet.

        Args:
            client: The connection.
            options: What calls and services have in common.
            direct: Where services listen for calls without a hop; None where there are none.
        """
        self._client = client
        self._options = options
        self._direct = direct

    @cached_property
    def caller(self) -> Caller:
        """The calling half."""
        return Caller(self._client, self._options)

    def open(self) -> None:
        """Have calls go to servers without a hop, if the client's options say so."""
        if self._direct is not None:
            self.caller.go_direct()

    async def close(self) -> None:
        """Wait for nothing any more."""
        if "caller" in self.__dict__:
            await self.caller.close()

    # -- calls

    def call(  # not `**options`: gathering them would cost as much as the rest of this
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
    ) -> Coroutine[Any, Any, Any]:
        """Call a method of one server; see `Client.call`."""
        return self.caller.call(
            topic,
            method,
            arguments,
            server=server,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
            settled=settled,
            heartbeat_s=heartbeat_s,
            key=key,
            result=result,
        )

    def call_stream(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        **options: Unpack[StreamOptions],
    ) -> PartStream:
        """Call a method that yields; see `Client.call_stream`."""
        caller, timeout_s, settled = self.caller, options["timeout_s"], options["settled"]
        demand_seconds("timeout_s", timeout_s)
        lease_s = caller.options.timeout_s if timeout_s is None else timeout_s
        window = options["window"]
        request = caller.request(
            topic,
            method,
            arguments,
            server=options["server"],
            timeout_s=lease_s,
            exchange=options["exchange"],
            codec=options["codec"],
            properties={STREAM_S: float(lease_s), CREDIT: window},
        )
        is_settled = caller.options.call_settled if settled is None else settled
        return PartStream(
            Parts(caller, request, window=window, result=options["result"], settled=is_settled)
        )

    async def cast(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        *,
        server: str | None,
        timeout_s: float | None,
        ttl_s: float | None,
        exchange: str | None,
        codec: str | None,
        settled: bool | None,
        key: str | None,
    ) -> None:
        """Have a method run by one server; see `Client.cast`."""
        request = self.caller.request(
            topic,
            method,
            arguments,
            server=server,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
        )
        await self.caller.cast(request, settled, ttl_s, key)

    async def fanout(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        **options: Unpack[FanoutOptions],
    ) -> None:
        """Have a method run by every server; see `Client.fanout`."""
        await self.caller.fanout(topic, method, arguments, **options)

    # -- services

    def service(self, topic: str, server: str | None, **options: Unpack[ServiceOptions]) -> Service:
        """Serve methods on the event loop; see `Client.service`."""
        return self._service(Service, topic, server, options)

    def threaded_service(
        self, topic: str, server: str | None, **options: Unpack[ServiceOptions]
    ) -> ThreadedService:
        """Serve methods that may block, in threads; see `Client.threaded_service`."""
        return self._service(ThreadedService, topic, server, options)

    def _service(self, kind: type[S], topic: str, server: str | None, options: ServiceOptions) -> S:
        return kind(
            self._client,
            self._options,
            topic,
            self._client.name if server is None else server,
            concurrency=options["concurrency"],
            exchange=options["exchange"],
            grace_s=options["grace_s"],
            direct=self._listening(options["direct"]),
        )

    def _listening(self, direct: Direct | bool | None) -> Direct | None:
        if direct is None:
            return self._direct
        return (self._direct or Direct()) if direct is True else direct or None

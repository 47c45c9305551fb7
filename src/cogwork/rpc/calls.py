"""The calls and services of one client: implements `cogwork.client.calls.Calls`."""

from __future__ import annotations

from contextlib import closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from cogwork.client.call_options import Direct
from cogwork.client.checks import demand_seconds
from cogwork.client.interception.interceptor import OutgoingCall
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
T = TypeVar("T")


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
        properties: dict[str, object] | None = None if self._client.interceptors is None else {}
        work = self.caller.call(
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
            properties=properties,
        )
        if properties is None:
            return work
        return self._intercepted(OutgoingCall("call", topic, method, server, properties), work)

    async def _intercepted(self, call: OutgoingCall, work: Coroutine[Any, Any, T]) -> T:
        """Do what calls a method, with interceptors around it."""
        assert self._client.interceptors is not None
        with closing(work), self._client.interceptors.call(call):
            return await work

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
        parts = Parts(caller, request, window=window, result=options["result"], settled=is_settled)
        if (interceptors := self._client.interceptors) is not None:
            assert request.properties is not None
            call = OutgoingCall("stream", topic, method, options["server"], request.properties)
            parts.begins = partial(interceptors.call, call)
        return PartStream(parts)

    def cast(
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
    ) -> Coroutine[Any, Any, None]:
        """Have a method run by one server; see `Client.cast`."""
        properties: dict[str, object] | None = None if self._client.interceptors is None else {}
        work = self.caller.cast(
            topic,
            method,
            arguments,
            server=server,
            timeout_s=timeout_s,
            exchange=exchange,
            codec=codec,
            settled=settled,
            ttl_s=ttl_s,
            key=key,
            properties=properties,
        )
        if properties is None:
            return work
        return self._intercepted(OutgoingCall("cast", topic, method, server, properties), work)

    def fanout(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        **options: Unpack[FanoutOptions],
    ) -> Coroutine[Any, Any, None]:
        """Have a method run by every server; see `Client.fanout`."""
        if self._client.interceptors is None:
            return self.caller.fanout(topic, method, arguments, **options)
        properties: dict[str, object] = {}
        work = self.caller.fanout(topic, method, arguments, properties=properties, **options)
        return self._intercepted(OutgoingCall("fanout", topic, method, None, properties), work)

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

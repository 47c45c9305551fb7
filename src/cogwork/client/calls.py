"""What a client has of RPC, which is built upon it: the protocols of its calls and services.

Theory of operation. `cogwork.rpc` imports the links of the client, and the client has methods to
call and to serve. So that neither package needs the other's classes to be there first, the client
knows RPC by these protocols alone, and loads it by name when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self, TypedDict, TypeVar, Unpack, cast, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from cogwork.client.call_options import Direct, RpcOptions

__all__ = ("GRACE_S", "WINDOW", "Calls", "MethodService", "ReplyStream", "arguments_of", "calls_of")

IMPLEMENTATION = "cogwork.rpc.calls"

WINDOW = 64
"""Parts of a streamed reply on their way or waiting, where a call says nothing else."""

GRACE_S = 5.0
"""How long work may go on when a service is stopped, where it says nothing else, in seconds."""

F = TypeVar("F", bound="Callable[..., Any]")


class SendOptions(TypedDict):
    """What calls, casts and fanouts can be told; see `Client.call`."""

    timeout_s: float | None
    exchange: str | None
    codec: str | None
    settled: bool | None


class CallOptions(SendOptions):
    """What a call can be told; see `Client.call`."""

    server: str | None
    heartbeat_s: float | None
    key: str | None
    result: Any


class StreamOptions(SendOptions):
    """What a call with a streamed reply can be told; see `Client.call_stream`."""

    server: str | None
    window: int
    result: Any


class CastOptions(SendOptions):
    """What a cast can be told; see `Client.cast`."""

    server: str | None
    ttl_s: float | None
    key: str | None


class FanoutOptions(SendOptions):
    """What a fanout can be told; see `Client.fanout`."""

    ttl_s: float | None


class ServiceOptions(TypedDict):
    """What a service can be told; see `Client.service`."""

    concurrency: int
    exchange: str | None
    grace_s: float
    direct: Direct | bool | None


class ReplyStream(Protocol):
    """A streamed reply: iterate it once; leaving it cancels the work."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Any: ...  # noqa: ANN401  # what the method yields

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def aclose(self) -> None:
        """End the iteration, and have the work cancelled."""


class MethodService(Protocol):
    """Serves the methods of a topic.

    Attributes:
        topic: What callers name.
        server: What callers name who mean this one.
        address: Where requests for this server come.
    """

    topic: str
    server: str
    address: str

    @overload
    def method(self, function: F, /) -> F: ...

    @overload
    def method(self, function: F, /, *, name: str) -> F: ...

    @overload
    def method(self, /, *, name: str) -> Callable[[F], F]: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def stop(self) -> None:
        """Take no more requests, works off what is there, and cancel what takes too long."""

    async def wait(self) -> None:
        """Serve until it is cancelled, or one of its addresses is taken away."""

    @property
    def running(self) -> int:
        """Counts the requests that are under work."""

    @property
    def waiting(self) -> int:
        """Counts the requests that wait because too many are under work."""


class Calls(Protocol):
    """The calls and services of one client."""

    def open(self) -> None:
        """Have calls go to servers without a hop, if the client's options say so."""

    async def close(self) -> None:
        """Wait for nothing any more."""

    def call(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, Any]:
        """Call a method of one server, and return what it returns."""

    def call_stream(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        **options: Unpack[StreamOptions],
    ) -> ReplyStream:
        """Call a method that yields."""

    def cast(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        **options: Unpack[CastOptions],
    ) -> Coroutine[Any, Any, None]:
        """Have a method run by one server."""

    def fanout(
        self,
        topic: str,
        method: str,
        arguments: Mapping[str, object],
        **options: Unpack[FanoutOptions],
    ) -> Coroutine[Any, Any, None]:
        """Have a method run by every server."""

    def service(
        self, topic: str, server: str | None, **options: Unpack[ServiceOptions]
    ) -> MethodService:
        """Serve methods on the event loop."""

    def threaded_service(
        self, topic: str, server: str | None, **options: Unpack[ServiceOptions]
    ) -> MethodService:
        """Serve methods that may block, in threads."""


def calls_of(client: object, options: RpcOptions, direct: Direct | None) -> Calls:
    """Make the calls and services of a client.

    Args:
        client: The client; what RPC asks of it is `cogwork.rpc.client_context.RpcContext`.
        options: What its calls have in common.
        direct: Where its services listen for calls without a hop; None where there are none.
    """
    return cast("Calls", import_module(IMPLEMENTATION).ClientCalls(client, options, direct))


def arguments_of(
    keywords: dict[str, object], further: Mapping[str, object] | None, *options: str
) -> dict[str, object]:
    """Return a method's arguments.

    Args:
        keywords: Those that were given as keywords.
        further: Those that were given in `arguments`, where every name is an argument's.
        *options: What the call itself takes in seconds, without `_s`: whoever leaves that out may
            mean the option or an argument, and the wrong guess would be noticed late, or never.

    Raises:
        TypeError: One keyword may be either.
    """
    for name in options:
        if name in keywords:
            value = keywords[name]
            raise TypeError(
                f"{name}={value!r:.40}: the option of the call is {name}_s, in seconds; "
                f"an argument of the method goes into arguments={{{name!r}: ...}}"
            )
    if further is not None:
        keywords.update(further)
    return keywords

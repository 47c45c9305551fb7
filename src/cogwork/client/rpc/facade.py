"""Calls and services without asyncio: what the synchronous client has of RPC."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Protocol

from cogwork.client.checks import demand_seconds
from cogwork.client.closing import Closing
from cogwork.client.on_thread import LoopThread, OnThread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from cogwork.client.client import Client
    from cogwork.client.rpc.part_stream import PartStream
    from cogwork.client.rpc.threaded import ThreadedService as AsyncService

__all__ = ("PartIterator", "SyncRpcCalls", "ThreadedService")


class SpawningThread(LoopThread, Protocol):
    """A loop's thread that takes work for which nobody waits."""

    def spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Has a coroutine run there, in the order of what is handed over."""


class PartIterator(Closing):
    """The parts of a call's reply; leaving the `for` or the `with` cancels the work."""

    def __init__(self, thread: SpawningThread, parts: PartStream) -> None:
        """Asks nothing yet.

        Args:
            thread: Where the event loop is.
            parts: What is iterated there.
        """
        self._thread = thread
        self._parts = parts
        # It keeps `parts` out of a cycle that this is in: the garbage collector would end them
        # on whatever thread it runs, and they are the loop's.
        self._end = weakref.finalize(self, thread.spawn, parts.aclose)
        self._end.atexit = False

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                try:
                    part = self._thread.wait(_next(self._parts))
                except StopAsyncIteration:
                    return
                yield part
        finally:
            self.close()

    def close(self) -> None:
        """Ends the iteration, and has the work cancelled.

        Waits for nothing: a garbage collector that drops a half-read iteration calls it as well, on
        the loop's own thread perhaps, or on one with a lock that the loop's thread wants.
        """
        self._end()


async def _next(parts: PartStream) -> Any:  # noqa: ANN401  # what the method yields
    return await anext(parts)


class ThreadedService(OnThread["AsyncService"]):
    """Serves methods in threads; made by the synchronous client's `service`, used in `with`."""

    @property
    def method(self) -> Callable[..., Any]:
        """Lets callers run a function: a decorator, with or without `name=`."""
        return self._counterpart.method

    def wait(self, timeout_s: float | None = None) -> None:
        """Serves until one of its addresses is taken away, or the time is over."""
        demand_seconds("timeout_s", timeout_s)
        self._thread.wait(self._counterpart.wait(), timeout_s)


class SyncRpcCalls:
    """The half of a synchronous client that calls and serves; options as in the asyncio client."""

    _thread: SpawningThread
    _client: Client

    def call(self, topic: str, method: str, /, **options: Any) -> Any:  # noqa: ANN401  # passed on
        """Calls a method of one server of a topic, and returns what it returns.

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
        """Has a method run by one server of a topic, and does not wait for it.

        Args:
            topic: What is asked.
            method: What is to be run.
            **options: The arguments, and the options of the asyncio client's `cast`: `server`,
                `timeout_s`, `ttl_s`, `idempotency_key`, ...
        """
        self._thread.wait(self._client.cast(topic, method, **options))

    def fanout(self, topic: str, method: str, /, **options: Any) -> None:
        """Has a method run by every server of a topic that there is, and does not wait for it.

        Args:
            topic: What is asked.
            method: What is to be run.
            **options: The arguments, and the options of the asyncio client's `fanout`.
        """
        self._thread.wait(self._client.fanout(topic, method, **options))

    def call_stream(self, topic: str, method: str, /, **options: Any) -> PartIterator:
        """Calls a method that yields; iterate what is returned, in `with` where it may end early.

        Args:
            topic: What is asked.
            method: What is to be run.
            **options: The arguments, and the options of the asyncio client's `call_stream`.
        """
        return PartIterator(
            self._thread, self._thread.wait(_parts_of(self._client, topic, method, options))
        )

    def service(self, topic: str, **options: Any) -> ThreadedService:
        """Serves methods in threads; use it in `with`.

        Args:
            topic: What callers name.
            **options: Those of the asyncio client's `threaded_service`: `server`, ...
        """
        return ThreadedService(
            self._thread, self._thread.wait(_service_of(self._client, topic, options))
        )


async def _called(client: Client, topic: str, method: str, options: dict[str, Any]) -> Any:  # noqa: ANN401  # what it returns
    return await client.call(topic, method, **options)


async def _parts_of(client: Client, topic: str, method: str, options: dict[str, Any]) -> PartStream:
    return client.call_stream(topic, method, **options)


async def _service_of(client: Client, topic: str, options: dict[str, Any]) -> AsyncService:
    return client.threaded_service(topic, **options)

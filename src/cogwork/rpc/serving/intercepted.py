"""Methods with interceptors around them: each kind of function stays of its kind."""

from __future__ import annotations

import inspect
from contextlib import aclosing
from functools import wraps
from typing import TYPE_CHECKING, Any

from cogwork.client.interception.interceptor import MethodRun
from cogwork.rpc.serving.context import current_call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from cogwork.client.interception.interceptors import Endings, Interceptors

__all__ = ("intercepted",)


def intercepted(
    function: Callable[..., Any], interceptors: Interceptors, topic: str, server: str, name: str
) -> Callable[..., Any]:
    """Return a function that does the same, and tells interceptors.

    Args:
        function: A method of a service.
        interceptors: Who is told, where the method runs: on its thread, in its context.
        topic: Of the service.
        server: The name of the service.
        name: What callers call the method.
    """

    def began() -> Endings:
        return interceptors.method(MethodRun(topic, server, name, current_call().request))

    async def finish(**arguments: object) -> object:
        with began():
            return await function(**arguments)

    async def yield_later(**arguments: object) -> AsyncIterator[object]:
        with began():
            async with aclosing(function(**arguments)) as parts:
                async for part in parts:
                    yield part

    def yield_now(**arguments: object) -> Iterator[object]:
        with began():
            yield from function(**arguments)

    def run(**arguments: object) -> object:
        with began():
            return function(**arguments)

    wrapper: Callable[..., Any] = run
    if inspect.iscoroutinefunction(function):
        wrapper = finish
    elif inspect.isasyncgenfunction(function):
        wrapper = yield_later
    elif inspect.isgeneratorfunction(function):
        wrapper = yield_now
    return wraps(function)(wrapper)

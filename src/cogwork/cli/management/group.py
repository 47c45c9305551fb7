"""A container that runs as several workers, to commands that are about the whole of it.

Theory of operation. Workers share their port, and the kernel picks one for each connection. Each of
them knows which others there are; so it is connected again and again, until each of them has been
met. One that has died is started again: what is about all of them waits for it, what only looks
does without it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import GIVE_UP_AFTER_S
from cogwork.cli.options.certificates import given_context
from cogwork.cli.options.passwords import hide, with_passwords
from cogwork.cli.options.tokens import given_token
from cogwork.client import Retry, connect
from cogwork.container.workers import OFFERED, siblings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from cogwork.amqp.performatives import Open
    from cogwork.client import Client

__all__ = ("NotMet", "met", "reach_all", "reach_each")

T = TypeVar("T")

ATTEMPTS_PER_WORKER = 20
"""By then it has not met one that is there once in some hundred million times."""

STARTS_AGAIN_S = 20.0
"""So long a worker that has died may take to be there again, on a machine that is busy."""

LOOK_S = 0.05
"""How often it is tried once it is likely that one is just being started again."""


class NotMet(TimeoutError):
    """A worker is there, and no connection has come to it."""


@asynccontextmanager
async def met(url: str, *, is_whole: bool = False) -> AsyncIterator[dict[str, Client]]:
    """Connect with each worker of a container, or with the container where it is alone.

    Args:
        url: Where; of several between commas, the first that answers.
        is_whole: Whether those count that have died, and are started again.

    Yields:
        A connection to each by its id, in the order of their numbers.

    Raises:
        NotMet: One of them is not met.
        ConnectError: The container cannot be reached, or refuses.
    """
    retry = Retry(give_up_after_s=GIVE_UP_AFTER_S)
    own = given_context()
    endpoints, token = with_passwords(url), given_token()
    until_s = time.monotonic() + STARTS_AGAIN_S
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(
            connect(endpoints, retry=retry, force=True, tls=own, token=token)
        )
        # Of several URLs, the others may lead to other containers.
        there = [first.endpoint] if first.endpoint is not None else endpoints
        workers = _all(first.container) if is_whole else await _present(first)
        found = {first.container.container_id: first}
        attempts = ATTEMPTS_PER_WORKER * len(workers)
        while missing := [each for each in workers if each not in found]:
            if attempts <= 0:
                if time.monotonic() > until_s:
                    raise NotMet(
                        f"no connection to {hide(url)} came to worker {missing[0]}"
                        f" within {STARTS_AGAIN_S:g} s"
                    )
                await asyncio.sleep(LOOK_S)
            attempts -= 1
            async with AsyncExitStack() as attempt:
                client = await attempt.enter_async_context(
                    connect(there, retry=retry, force=True, tls=own, token=token)
                )
                name = client.container.container_id
                if name in missing:
                    found[name] = client
                    stack.push_async_exit(attempt.pop_all())
        yield {name: found[name] for name in workers}


async def _present(first: Client) -> list[str]:
    """List the workers that are there, as one of them knows."""
    container = await Manager(first).get("READ", "container")
    return container.get("workers") or [container["name"]]


def _all(container: Open) -> list[str]:
    """List the workers that there are, by what one of them says of itself."""
    count = (container.properties or {}).get(OFFERED)
    name = container.container_id
    return siblings(name, count) if isinstance(count, int) else [name]


def reach_each(url: str, work: Callable[[Client], Awaitable[T]]) -> dict[str, T]:
    """Connect with each worker of a container, and do the same at each.

    Args:
        url: Where.
        work: What to do.

    Returns:
        What `work` returns, by the worker's id; where the container has none, by its own.

    Raises:
        InvalidUrlError: The URL is none.
        NotMet: One of the workers is not met.
        ConnectError: The container cannot be reached, or refuses.
    """

    async def run() -> dict[str, T]:
        async with met(url) as workers:
            results = await asyncio.gather(*map(work, workers.values()))
            return dict(zip(workers, results, strict=True))

    return asyncio.run(run())


def reach_all(url: str, work: Callable[[dict[str, Client]], Awaitable[T]]) -> T:
    """Connect with each worker of a container, those too that are just being started again.

    Args:
        url: Where.
        work: What to do with all of them.

    Returns:
        What `work` returns.

    Raises:
        InvalidUrlError: The URL is none.
        NotMet: One of the workers is not met.
        ConnectError: The container cannot be reached, or refuses.
    """

    async def run() -> T:
        async with met(url, is_whole=True) as workers:
            return await work(workers)

    return asyncio.run(run())

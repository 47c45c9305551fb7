"""How a command reaches a container: one connection, for the length of the command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from cogwork.cli.options.certificates import given_context
from cogwork.cli.options.passwords import with_passwords
from cogwork.cli.options.tokens import given_token
from cogwork.client import Retry, connect

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from cogwork.client import Client

__all__ = ("reach",)

T = TypeVar("T")

GIVE_UP_AFTER_S = 5.0
"""For a connection that is lost in the middle; somebody waits at the terminal."""


def reach(
    url: str,
    work: Callable[[Client], Awaitable[T]],
    *,
    force: bool = False,
    tls: ssl.SSLContext | None = None,
) -> T:
    """Connect, works, and close the connection.

    Args:
        url: Where; of several between commas, the first that answers.
        work: What to do.
        force: Whether it is about that container, and no other will do.
        tls: Certificates; None takes those of the command line, or the system's authorities.

    Returns:
        What `work` returns.

    Raises:
        InvalidUrlError: The URL is none.
        ConnectError: The container cannot be reached, or refuses.
    """
    own = tls or given_context()
    endpoints, token = with_passwords(url), given_token()

    async def run() -> T:
        retry = Retry(give_up_after_s=GIVE_UP_AFTER_S)
        login = connect(endpoints, retry=retry, force=force, tls=own, token=token)
        async with login as client:
            return await work(client)

    return asyncio.run(run())

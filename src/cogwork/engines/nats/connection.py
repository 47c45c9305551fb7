"""The one connection of a host to NATS, made anew where the library has closed it for good.

Theory of operation. The library connects again by itself when a server goes away. After most
complaints of a server (`-ERR`), such as that there are too many connections or that a login has
expired, it does not: it closes its client, which never connects again. So nobody keeps a client;
who needs one asks here, and all who ask while one is being made wait for the same attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

import nats
from nats.errors import Error as NatsError

from cogwork.engines.shared.server import ServerDown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nats.aio.client import Client
    from nats.js import JetStreamContext

__all__ = ("REQUEST_TIMEOUT_S", "NatsConnection", "Session")

REQUEST_TIMEOUT_S = 3.0


class Session(NamedTuple):
    """A client, and JetStream behind it."""

    client: Client
    streams: JetStreamContext


class NatsConnection:
    """A connection to a server, or to one of a cluster.

    Args:
        urls: Where they are.
        login: What the library takes for it, such as `token`.
    """

    def __init__(self, urls: Sequence[str], login: Mapping[str, str]) -> None:
        self._urls = list(urls)
        self._login = dict(login)
        self._session: Session | None = None
        self._attempt: asyncio.Task[Session] | None = None

    async def session(self) -> Session:
        """Return what is there, or connect; whether it is connected now its client says.

        Raises:
            ServerDown: No server can be reached, or none lets us in.
        """
        if self._session is not None and not self._session.client.is_closed:
            return self._session
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.create_task(self._connect())
            # Who gives up in the meantime leaves it to the others, and its failure to nobody.
            self._attempt.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._attempt)

    async def close(self) -> None:
        """Leave the server."""
        attempt, self._attempt = self._attempt, None
        session, self._session = self._session, None
        if attempt is not None and not attempt.done():
            attempt.cancel()
        if session is not None:
            with contextlib.suppress(NatsError, OSError):
                await session.client.close()

    async def _connect(self) -> Session:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                client = await nats.connect(
                    self._urls,
                    error_cb=_ignore,
                    connect_timeout=1,
                    reconnect_time_wait=0.1,
                    max_reconnect_attempts=-1,
                    ping_interval=2,
                    **self._login,
                )
        except (TimeoutError, NatsError, OSError) as error:
            reason = str(error) or "no answer in time"
            raise ServerDown(f"NATS: {reason}", may_have_happened=False) from error
        except asyncio.CancelledError:  # which those who wait were not
            raise ServerDown("NATS: the connection was given up", may_have_happened=False) from None
        self._session = Session(client, client.jetstream(timeout=REQUEST_TIMEOUT_S))
        return self._session


async def _ignore(error: Exception) -> None:
    """Take the client's complaints; whoever asks is answered."""
    del error

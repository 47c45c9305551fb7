"""A server that a caller may reach directly."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.client.connection.retry import Retry
from cogwork.client.options import Options
from cogwork.rpc.calling.route import Route
from cogwork.rpc.calling.targets import shared
from cogwork.rpc.direct.adaptive_spin import AdaptiveSpin

if TYPE_CHECKING:
    from cogwork.client.connection.url import Endpoint
    from cogwork.rpc.client_context import OwnConnection, RpcContext
    from cogwork.rpc.wheel import Wheel

__all__ = ("Peer",)

DIAL_S = 0.5
"""How long a call waits for a direct connection before it goes through the mesh after all."""

AVOID_S = 30.0
"""How long a server that could not be reached is left alone."""

log = logging.getLogger("cogwork.client.rpc")


class Peer:
    """One server, and the connection to it, if there is one.

    Attributes:
        address: The server's address.
        endpoint: Where it listens.
        is_used: Whether a call went there since idle ones were looked for.
        has_failed: Whether it could not be reached when that was tried last.
        heard_s: When it was heard of last through the mesh, on the loop's clock.
    """

    def __init__(self, client: RpcContext, wheel: Wheel, address: str, endpoint: Endpoint) -> None:
        """Is not connected.

        Args:
            client: The caller's.
            wheel: For the deadlines of calls.
            address: The server's.
            endpoint: Where it listens.
        """
        self.address = address
        self.endpoint = endpoint
        self.is_used = False
        self.has_failed = False
        self.heard_s = asyncio.get_running_loop().time()
        self._client = client
        self._wheel = wheel
        self._own: OwnConnection | None = None
        self._route: Route | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._avoid_until_s = 0.0

    @property
    def route(self) -> Route | None:
        """The way there, if it stands."""
        if self._route is not None and self._own is not None:
            if self._own.is_connected:
                self.is_used = True
                return self._route
            self.drop()
        return None

    @property
    def is_busy(self) -> bool:
        """Whether calls are under way on the connection."""
        replies = self._route.replies if self._route is not None else None
        return replies is not None and bool(replies.calls)

    @property
    def may_dial(self) -> bool:
        """Whether it is worth trying."""
        return asyncio.get_running_loop().time() >= self._avoid_until_s

    async def dial(self) -> Route | None:
        """Connect, once for all who wait for it; return the way there, or None."""
        if self._dialling is None:
            self._dialling = self._client.spawn(self._dial())
        try:
            async with asyncio.timeout(DIAL_S):
                await shared(self._dialling)
        except TimeoutError:
            self.avoid()
        return self.route

    async def _dial(self) -> None:
        own = self._client.beside(
            self.endpoint,
            Options(
                name=self._client.name,
                tls=self._client.tls,
                sasl="PLAIN",
                force=True,
                retry=Retry(first_s=0.0, give_up_after_s=0.0),
                connect_timeout_s=4 * DIAL_S,
            ),
        )
        try:
            await own.__aenter__()
            route = Route(own, self._wheel)
            route.spin = AdaptiveSpin(own, self._client.spin_us)
            await route.open(self.address)
        except (CogworkError, OSError) as error:
            log.info("cannot call %s directly: %s", self.address, error)
            self.avoid()
            await own.close()
        except asyncio.CancelledError:
            await own.close()
            raise
        else:
            self._own, self._route = own, route
            self.has_failed = False
        finally:
            self._dialling = None

    def avoid(self) -> None:
        """Go through the mesh for a while."""
        self.has_failed = True
        self._avoid_until_s = asyncio.get_running_loop().time() + AVOID_S

    def drop(self) -> None:
        """Give the connection up."""
        own, self._own, self._route = self._own, None, None
        if own is not None:
            self._client.spawn(own.close())

    async def close(self) -> None:
        """Close the connection."""
        own, self._own, self._route = self._own, None, None
        if own is not None:
            await own.close()

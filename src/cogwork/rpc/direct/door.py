"""The door of a service for callers that come directly: it listens, and says where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.rpc.direct.announcer import Announcer
from cogwork.rpc.direct.listener import DirectListener
from cogwork.rpc.direct.meeting import matchmaker, stamp

if TYPE_CHECKING:
    from cogwork.client.call_options import Direct
    from cogwork.rpc.client_context import RpcContext
    from cogwork.rpc.serving.service import Service

__all__ = ("Door",)


class Door:
    """Where callers come without a hop."""

    def __init__(
        self,
        service: Service,
        client: RpcContext,
        direct: Direct,
        exchange: str | None,
    ) -> None:
        """Is closed.

        Args:
            service: Whose it is.
            client: The connection.
            direct: Where to listen.
            exchange: Of the service's addresses; None for the usual one.
        """
        self._service = service
        self._client = client
        self._topic = matchmaker(service.options, exchange)
        self._listener = DirectListener(
            client,
            direct,
            frozenset({service.address, service.options.one_of(service.topic, exchange)}),
            service.window,
            take=service.take,
            lost=service.request_queue.lost,
        )
        self._announcer: Announcer | None = None

    async def open(self) -> dict[str, object]:
        """Listen, and announces it; return what replies are to tell.

        Raises:
            ListenError: The port is taken.
        """
        self._listener.open()
        server, url = self._service.address, self._listener.url
        self._announcer = Announcer(self._client, self._topic, server, url)
        await self._announcer.open()
        return stamp(server, url)

    async def close(self) -> None:
        """Take no more callers, and say so."""
        self._listener.close()
        if self._announcer is not None:
            await self._announcer.close()

    def end(self) -> None:
        """Close the connections of those that came."""
        self._listener.end()

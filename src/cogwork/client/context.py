"""What the parts of a client ask of it.

Theory of operation. A link end, a stream or a service knows none of the others that a client can
open: it takes one of these protocols, the smallest that has what it needs. So each part can be read
without the rest, and none imports the class that has them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Open
    from cogwork.client.connection.url import Endpoint
    from cogwork.client.interception.interceptors import Interceptors
    from cogwork.client.links.link_end import LinkEnd
    from cogwork.dataplane.client.flusher import Flusher
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.message.messages import Message
    from cogwork.io.turn import Turn, Waiter

__all__ = ("ClientContext", "LinkContext")


class LinkContext(Protocol):
    """What a link end asks of the client that keeps it attached.

    Attributes:
        core: The client's data plane.
        turn: Where tasks go on that wait for what the connection brings.
        create_future: Makes what such a task waits for.
    """

    core: Core
    turn: Turn
    create_future: Callable[[], Waiter[Any]]

    @property
    def flusher(self) -> Flusher:
        """Sends at the end of the loop's turn what was written in it."""

    def demand_opened(self) -> None:
        """Check that the client has been connected once.

        Raises:
            NotOpened: It has not.
        """

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands at present."""

    @property
    def container(self) -> Open:
        """What the container at the other end said when the connection was opened."""

    @property
    def has_relay(self) -> bool:
        """Whether the container passes on messages that name their address themselves."""

    def next_link_name(self, address: str) -> str:
        """Return a name that no other link of this client has."""

    def register(self, end: LinkEnd) -> None:
        """Keep a link end attached from now on."""

    def forget(self, end: LinkEnd) -> None:
        """Do not attach a link end again."""

    def follow(self, redirect: AmqpError) -> dict[Endpoint, str]:
        """Take the connection where a link of it is redirected to; its links come along."""

    def flush(self) -> None:
        """Have everything sent that was written in this turn of the loop."""

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something beside the application; it ends with the client."""


class ClientContext(LinkContext, Protocol):
    """What parts ask that send messages of their own, or manage the container.

    Attributes:
        interceptors: See what the application does; None where there are none.
    """

    interceptors: Interceptors | None

    async def send_own(
        self,
        address: str,
        message: Message,
        *,
        settled: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        """Send one message that is not the application's, and wait until it is accepted."""

    async def manage(
        self, operation: str, properties: Mapping[str, object], body: object = None
    ) -> Message:
        """Ask the container's `$management` node."""

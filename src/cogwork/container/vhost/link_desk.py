"""What connections' links are brought to: a container's attachments, or a reader's ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peer import Peer
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint

__all__ = ("LinkDesk",)


class LinkDesk(Protocol):
    """Takes links, and lets them go."""

    def take(self, link: Link, attach: Attach, client: ClientContext) -> None:
        """Accept or refuse a link that the peer attaches."""

    def release(self, link: Link, client: ClientContext) -> None:
        """Give back what a link held."""

    def permit_anew(self, connection: Peer, client: ClientContext) -> None:
        """Detach the links of a connection that its permissions do not allow any more."""

    def end_session(self, session: SessionEndpoint) -> None:
        """Take note that a session has ended."""

    def end_connection(self, connection: Connection, client: ClientContext) -> None:
        """Take note that a connection has ended."""

    def tick(self, now_s: float) -> None:
        """Let time pass, once a second."""

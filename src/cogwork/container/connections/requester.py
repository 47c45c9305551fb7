"""Who asks something of `$management`: the peer of a connection, with its permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from cogwork.config.settings import Right
    from cogwork.container.connections.clients import ClientContext
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.connection import Connection

__all__ = ("ClientRequester",)

REPLIES_WAITING_MAX = 1000
"""Replies that a requester has asked for and gives no credit for; further requests are refused."""


class ClientRequester:
    """The peer of one connection.

    Attributes:
        connection: Its connection.
        client: What the container keeps with that.
    """

    __slots__ = ("client", "connection")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.client = cast("ClientContext", connection.context)

    @property
    def identity(self) -> str | None:
        """The name it proved; None for an anonymous peer."""
        return self.connection.identity

    def may(self, right: str, address: str) -> bool:
        """Return whether it has a right at an address."""
        return self.client.may(cast("Right", right), address)

    def is_denied(self, right: str, address: str) -> bool:
        """Return whether a right is denied to it, whatever it may do otherwise."""
        return self.client.is_denied(cast("Right", right), address)

    def takes_reply(self, address: str) -> bool:
        """Return whether a reply may go to `address`, and is likely to be taken."""
        entry = self.client.vhost.space.entries.get(address.removeprefix("/").encode())
        if entry is None:
            return self.may("send", address)
        if entry.held >= REPLIES_WAITING_MAX:
            return False
        return self._is_own(entry) or self.may("send", address)

    def _is_own(self, entry: AddressEntry) -> bool:
        wire = self.connection.wire
        return bool(entry.outlets) and all(
            isinstance(outlet, OutgoingLink) and outlet.session.wire is wire
            for outlet in entry.outlets
        )

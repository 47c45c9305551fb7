"""What calls and services ask of the client that they are built upon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from cogwork.client.context import ClientContext

if TYPE_CHECKING:
    import ssl

    from cogwork.client.connection.url import Endpoint
    from cogwork.client.options import Options
    from cogwork.dataplane.transport.wire import Wire

__all__ = ("OwnConnection", "RpcContext")


class OwnConnection(ClientContext, Protocol):
    """Another connection of the same client, to a server that is called directly."""

    @property
    def wire(self) -> Wire | None:
        """The compiled half of its connection; None while there is none."""

    async def __aenter__(self) -> Self: ...

    async def close(self) -> None:
        """Close the connection and end all that was opened on it."""


class RpcContext(ClientContext, Protocol):
    """A client, as calls and services see it."""

    @property
    def name(self) -> str:
        """The container-id of this client."""

    @property
    def tls(self) -> ssl.SSLContext | None:
        """What it trusts where TLS is spoken; None for the system's authorities."""

    @property
    def spin_us(self) -> int:
        """How long callers look for direct replies before they sleep, in microseconds."""

    def beside(self, endpoint: Endpoint, options: Options) -> OwnConnection:
        """Make another connection of this client's, to somewhere else; it is not opened yet."""

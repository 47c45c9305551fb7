"""How servers listen for callers that come directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.loopback import is_loopback

if TYPE_CHECKING:
    import ssl

__all__ = ("Direct",)

WILDCARDS = frozenset({"", "0.0.0.0", "::"})
"""Hosts that mean every address of this machine."""


@dataclass(frozen=True, slots=True)
class Direct:
    """Where a service listens, and as whom it is told to callers.

    Whoever comes needs a secret that the service makes up, and tells through the mesh only: nobody
    is anonymous. Off the loopback TLS is needed as well.

    Attributes:
        host: The name or address to listen on.
        port: The TCP port; 0 for any free one.
        tls: The service's certificate; see `cogwork.io.tls.server_context`.
        advertise: What callers connect to, a name that the certificate has; None for the host.
        spin_us: How long a caller looks for the reply to its only call before it sleeps, in
            microseconds: a fast server has answered by then. Where that does not help it is hardly
            tried any more. 0 for never.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    advertise: str | None = None
    spin_us: int = 250

    def __post_init__(self) -> None:
        """Looks whether the secret stays one.

        Raises:
            ValueError: It would travel in clear, or callers would not know where to.
        """
        if self.host in WILDCARDS and self.advertise is None:
            raise ValueError(f"direct: callers cannot connect to {self.host!r}: set advertise")
        if self.tls is None and not is_loopback(self.host):
            raise ValueError(f"direct: off the loopback ({self.host}) a service needs tls")

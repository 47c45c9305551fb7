"""What the container keeps for each connection."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import Condition
from cogwork.container.connections.node_shares import FROM_AFAR
from cogwork.container.connections.shares import Holder
from cogwork.container.gateways.inside import NoSocket
from cogwork.container.vhost.reply_addresses import is_reply_address
from cogwork.io.networks import PeerName
from cogwork.plugin.node import Refused
from cogwork.router.exchanges.addresses import without_key
from cogwork.router.own_addresses import CLAIMS, missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.types import Symbol
    from cogwork.config.oauth_settings import OAuth
    from cogwork.config.settings import Listen, Right
    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.connections.peer import Identified
    from cogwork.container.connections.shares import Excess
    from cogwork.container.gateways.inside import Inside
    from cogwork.container.security.access import Permits
    from cogwork.container.security.permissions import Permissions
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.container.workers import LinkSocket
    from cogwork.sasl.sides import Grant

__all__ = ("ClientContext", "peer_of", "who_is")


NOWHERE = PeerName("", 0)
"""Where a peer within the process is."""


@dataclass(slots=True, eq=False)
class ClientContext:
    """One connection's standing.

    Attributes:
        listen: The listener it came by.
        mechanisms: What the listener offers.
        number: Counts the container's connections.
        vhost: Its virtual host; the default one until it opens.
        permissions: What it may do.
        sock: What it came by.
        peer: Where the client itself is; a load balancer may stand between.
        connected_at_s: When, by the wall clock.
        is_free: Whether it may do everything, so that nothing need be looked up.
        is_counted: Whether it is a client, and counts in the balance of containers.
        excess: Which limit it is beyond, and only kept to be told so; None while it is beyond none.
        holders: For whom it is counted.
        sessions: How many it has begun and not ended, as far as they count.
        dynamic_addresses: How many it has.
        closing_since_s: Since when it owes us the answer to our close, by the monotonic clock.
        permits: What its messages may be sent to that name their address; None until one is sent.
        name_of_certificate: Tells whom its client certificate names; None without TLS.
        end_point: What its TLS connection is known by to both ends; None without TLS.
        is_by_certificate: Whether it has logged in by its certificate.
        is_held: Whether it gets no credit, as its user has too much in queues.
        grant: What its token stands for; None where it has logged in otherwise.
        rules: By what its token was taken.
    """

    listen: Listen | LinkSocket | Inside
    mechanisms: tuple[Symbol, ...]
    number: int
    vhost: VirtualHost
    permissions: Permissions
    sock: socket.socket | NoSocket
    connected_at_s: float
    peer: PeerName = NOWHERE
    is_free: bool = False
    is_counted: bool = False
    excess: Excess | None = None
    holders: tuple[Holder, ...] = ()
    sessions: int = 0
    dynamic_addresses: int = 0
    closing_since_s: float | None = None
    permits: Permits | None = None
    name_of_certificate: Callable[[], str | None] | None = None
    end_point: bytes | None = None
    is_by_certificate: bool = False
    is_held: bool = False
    grant: Grant | None = None
    rules: OAuth | None = None

    @property
    def certificate_name(self) -> str | None:
        """Whom its client certificate names."""
        return self.name_of_certificate() if self.name_of_certificate is not None else None

    @property
    def shares(self) -> tuple[Holder, ...]:
        """For whom what it has is counted: those whom it is counted for, and itself."""
        return (*self.holders, Holder("connection", str(self.number)))

    @property
    def makers(self) -> Makers:
        """For whom queues and streams are made that it needs."""
        return self.holders or FROM_AFAR

    @property
    def source(self) -> Holder:
        """Its source address."""
        return Holder("source", self.peer.source)

    def permit(self, permissions: Permissions) -> None:
        """Let it do other things from now on; its links stay as they are."""
        self.permissions = permissions
        self.is_free = permissions.are_all(self.vhost.name or None)
        self.permits = None

    def may(self, right: Right, address: str) -> bool:
        """Return whether it has a right at an address.

        Whoever knows a reply address was given it, and may send there. Who may nothing yet puts
        the token to `$cbs` that says what it may.
        """
        if right == "send" and is_reply_address(address):
            return True
        if address.removeprefix("/") == CLAIMS:
            return right != "manage"
        address = without_key(address)
        return self.is_free or self.permissions.allows(right, address, self.vhost.name or None)

    def is_denied(self, right: Right, address: str) -> bool:
        """Return whether a right is denied to it, whatever it may do otherwise."""
        return self.permissions.denies(right, without_key(address), self.vhost.name or None)

    def demand_any(self, right: Right) -> None:
        """Check that it may do anything at all, for what needs no permission of its own.

        Raises:
            Refused: It may not.
        """
        if self.permissions.are_none:
            raise Refused(f"no permission to {right} anywhere", Condition.UNAUTHORIZED_ACCESS)

    def demand(self, right: Right, address: str) -> None:
        """Check a permission.

        Raises:
            Refused: It is missing.
        """
        if not self.may(right, address):
            raise Refused(missing(right, address), Condition.UNAUTHORIZED_ACCESS)


def who_is(connection: Identified) -> dict[str, object]:
    """Tell whose connection it is, as the security log has it."""
    client = cast("ClientContext", connection.context)
    return {
        "user": connection.identity,
        "peer": peer_of(client),
        "connection": client.number,
    }


_IDS = struct.Struct("3i")
"""Process, user and group, as Linux has them for the other end of a Unix-domain socket."""


def peer_of(client: ClientContext) -> str:
    """Return where a client is: host and port, or which process on this machine."""
    peer, sock = client.peer, client.sock
    if isinstance(sock, NoSocket):
        return sock.getpeername()
    if peer.port:
        return f"{peer.host}:{peer.port}"
    return peer.host or _process_at(sock)


def _process_at(sock: socket.socket) -> str:
    """Return who has connected by a Unix-domain socket, where the system does."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None or sock.family != socket.AF_UNIX or sock.fileno() < 0:
        return ""
    ids = sock.getsockopt(socket.SOL_SOCKET, option, _IDS.size)
    return "process {}, user {}, group {}".format(*_IDS.unpack(ids))

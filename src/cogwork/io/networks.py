"""Addresses of peers, and lists of networks that they may or may not be in."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.redirect import Host

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable
    from ipaddress import IPv4Address

__all__ = ("Network", "Networks", "PeerName", "network_of", "socket_peer")

Network = IPv4Network | IPv6Network

SOURCE_BITS = 64
"""A machine has as many addresses of IPv6 as it likes within its network."""


class PeerName(NamedTuple):
    """Where a peer is.

    Attributes:
        host: Its address; the path of its socket where it has none.
        port: Its port; 0 for a path.
    """

    host: str
    port: int

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """Its address; None for a path. One of IPv4 that is written in IPv6 is one of IPv4."""
        try:
            found = ip_address(self.host.partition("%")[0])
        except ValueError:
            return None
        mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
        return mapped or found

    @property
    def source(self) -> str:
        """Its address as far as it counts for shares: of IPv6 the network; else the path."""
        address = self.address
        if address is None or address.version == 4:
            return self.host if address is None else str(address)
        return str(ip_network((int(address), SOURCE_BITS), strict=False))

    def __str__(self) -> str:
        """Write host and port, or the path."""
        return str(Host(self.host, self.port)) if self.port else self.host or "a local process"


def socket_peer(sock: socket.socket) -> PeerName:
    """Return where a connected socket leads; an empty name where nothing tells."""
    try:
        name = sock.getpeername()
    except OSError:
        return PeerName("", 0)
    return PeerName(name[0], name[1]) if isinstance(name, tuple) else PeerName(str(name or ""), 0)


def network_of(text: str) -> Network:
    """Read a network, such as 10.0.0.0/8, or an address, which is a network of one.

    Raises:
        ValueError: It is none, or has bits behind its prefix.
    """
    return ip_network(text)


class Networks:
    """A list of networks."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Read them.

        Args:
            texts: The networks.

        Raises:
            ValueError: One is none.
        """
        self._networks = tuple(map(network_of, texts))

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self._networks)

    def holds(self, peer: PeerName) -> bool:
        """Tell whether a peer is in one of them; one without an address is in none."""
        address = peer.address
        return address is not None and any(address in each for each in self._networks)

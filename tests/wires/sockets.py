"""A broker whose ends of connections write to sockets."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from .broker import Broker
from .peer import Peer

if TYPE_CHECKING:
    from cogwork.dataplane.connection import Connection


class SocketPeer(Peer):
    """A peer whose broker's end writes to a socket; what it says is still fed."""

    def __init__(self, broker: SocketBroker) -> None:
        self.near, self.far = socket.socketpair()
        for each in (self.near, self.far):
            each.setblocking(False)
        broker.fd = self.far.fileno()
        super().__init__(broker)

    def take(self) -> bytes:
        data = b""
        try:
            while self.near.fileno() >= 0 and (chunk := self.near.recv(1 << 20)):
                data += chunk
                if self.wire.blocked:
                    self.wire.on_writable()
        except BlockingIOError:
            pass
        return data


class SocketBroker(Broker):
    """Makes connections on whatever descriptor it was told last."""

    fd = -1

    def connect(self, **settings: object) -> Connection:
        connection = super().connect(fd=self.fd, **settings)
        self.fd = -1
        return connection

    def close(self) -> None:
        """Close all sockets."""
        for peer in self.peers:
            if isinstance(peer, SocketPeer):
                peer.near.close()
                peer.far.close()

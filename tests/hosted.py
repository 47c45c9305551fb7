"""A whole container in process, without sockets or an event loop, for the peers of `wires`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cogwork.amqp.sasl import ANONYMOUS, PLAIN
from cogwork.config.settings import Configuration, Listen
from cogwork.container.container import Container

if TYPE_CHECKING:
    import socket

    from wires import Peer

    from cogwork.dataplane.connection import Connection

__all__ = ("Hosted",)

LISTEN = Listen(port=0, transport="ws", sasl=["ANONYMOUS", "PLAIN"])
"""Not a plain socket: the connections have no file descriptor, their bytes come by `feed`."""


class Watched(Container):
    """A container that remembers the faults of nodes instead of logging them."""

    faults: list[BaseException]

    def on_node_fault(self, port: object, error: Exception) -> None:
        self.faults.append(error)


class Unused:
    """Stands where a socket would."""

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 0)

    def close(self) -> None:
        pass


class Hosted:
    """What a `Peer` needs of its host, on a container.

    Attributes:
        container: It does not listen; time passes when it is told so.
        core: The container's data plane.
        peers: All that connected.
        links: None is known here: ends of links are the container's.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.container = Watched(configuration or Configuration(id="hosted", listeners=[LISTEN]))
        self.container.faults = []
        self.container.peers.on_fault = self._on_fault  # type: ignore[method-assign]  # it watches
        self.core = self.container.core
        self.peers: list[Peer] = []
        self.links: dict[str, Any] = {}

    def _on_fault(self, connection: object, error: BaseException) -> None:
        self.container.faults.append(error)

    def connect(self, **settings: Any) -> Connection:
        sock = cast("socket.socket", Unused())
        accepted = self.container.peers.accept(LISTEN, (ANONYMOUS, PLAIN), sock)
        assert accepted is not None
        return accepted[0]

    def settle_down(self) -> None:
        """Let every peer hear what there is to hear."""
        self.core.flush()
        while sum(peer.hear() for peer in self.peers):
            self.core.flush()
        assert not self.container.faults, self.container.faults

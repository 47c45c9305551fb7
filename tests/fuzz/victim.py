"""A whole container in process, with bystanders whose messages must go on whatever others do."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from wires import Peer

from cogwork.amqp.outcomes import Accepted
from cogwork.container.container import Container
from cogwork.container.settings import Configuration, Listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from cogwork.dataplane.connection import Connection

__all__ = ("Victim",)

LISTEN = Listen(port=0, transport="ws", sasl=["ANONYMOUS", "PLAIN"])
"""Not a plain socket: the connections have no file descriptor, their bytes come by `feed`."""

SETTLED = (b"settled", True)
UNSETTLED = (b"unsettled", False)


class Passwords:
    """Knows no password, and is quick to say so."""

    async def check(self, _name: str, _password: str) -> bool:
        return False

    def close(self) -> None:
        pass


class Watched(Container):
    """A container that remembers its own faults instead of logging them."""

    faults: list[BaseException]

    def on_fault(self, _connection: Connection, error: BaseException) -> None:
        self.faults.append(error)

    def _on_node_fault(self, _port: object, error: Exception) -> None:
        self.faults.append(error)


class Unused:
    """Stands where a socket would."""

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 0)

    def close(self) -> None:
        pass


class Victim:
    """A container, two bystanders, and a door for hostile connections.

    Attributes:
        core: The container's data plane.
        peers: The bystanders.
    """

    def __init__(self) -> None:
        self._container = Watched(Configuration(id="victim", listeners=[LISTEN]))
        self._container.faults = []
        access = self._container._access  # real checks take a tenth of a second
        access._passwords = Passwords()  # type: ignore[assignment]
        self.core = self._container.core
        self.peers: list[Peer] = []
        self._publisher = Peer(self).greet().publisher("bystander/a")
        self._consumer = Peer(self).greet().consumer("bystander/a", credit=10)
        self._subscriber = Peer(self).greet().consumer("topic/bystander.#", credit=10)
        self._to_topic = self.peers[0].publisher("topic/bystander.x")

    def connect(self, **_settings: object) -> Connection:
        accepted = self._container.accept(LISTEN, cast("socket.socket", Unused()))
        assert accepted is not None
        return accepted[0]

    def settle_down(self) -> None:
        """Lets the bystanders hear what there is to hear."""
        self.core.flush()
        while any(peer.wire.unsent_bytes for peer in self.peers):
            for peer in self.peers:
                peer.hear()
            self.core.flush()

    def suffer(self, chunks: Iterable[bytes], *, politely: bool) -> None:
        """Takes in a hostile connection, and loses it."""
        connection = self.connect()
        for chunk in chunks:
            connection.wire.feed(chunk)
            connection.wire.take_output(100_000)
            self.core.flush()
        if politely:
            connection.close()
        connection.lose()
        self.core.flush()
        assert not self._container.faults, self._container.faults

    def check_bystanders(self) -> None:
        """Asserts that messages between bystanders arrive and are answered."""
        for publisher, consumer in (
            (self._publisher, self._consumer),
            (self._to_topic, self._subscriber),
        ):
            before = len(consumer.arrivals)
            delivery = publisher.send(b"still here")
            publisher.send(b"x" * 3000, pieces=3, settled=True)
            consumer.flow(10)
            consumer.accept_all()
            bodies = [arrival.body for arrival in consumer.arrivals[before:]]
            assert b"still here" in bodies
            assert b"x" * 3000 in bodies
            assert publisher.outcomes[delivery] == Accepted()
            consumer.arrivals.clear()
            publisher.outcomes.clear()
            publisher.sent.clear()
            publisher.answers.clear()
        for peer in self.peers:
            assert not peer.finished
            peer.heard.clear()

    def check_nothing_left(self) -> None:
        """Asserts that the hostile connections that have gone left nothing behind."""
        self._container._detach_overdue()
        for now_s in (self.core.now + 1e6, self.core.now + 2e6):
            for vhost in self._container.vhosts.values():
                vhost.forget_idle(now_s)
        assert len(self._container.connections) == len(self.peers)
        assert self.core.held_bytes == 0
        assert self.core.held_deliveries == 0
        assert self.core.open_fanouts == 0
        assert len(self.core.wires) == len(self.peers)
        assert self.core.blocked_links() == []

"""How a plain socket's pump ends while its peer neither reads nor stops sending."""

from __future__ import annotations

import asyncio
import selectors
import socket

from wires import Broker

from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.io.pump import SocketPump


class CountingSelector(selectors.DefaultSelector):
    """Counts how often the loop went round."""

    rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.rounds += 1
        return super().select(timeout)


def test_a_peer_that_does_not_read_costs_nothing_while_its_last_bytes_wait() -> None:
    """The socket stays readable, and nobody wants to read it: the loop must not spin on it."""
    selector = CountingSelector()

    async def story() -> int:
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        broker = Broker()
        connection = Connection(broker.core, broker, ConnectionSettings(), far.fileno())
        SocketPump(connection, far)
        connection.wire.write(b"x" * (4 << 20))
        connection.flush()
        assert connection.wire.blocked
        connection.lose()
        near.send(b"more")
        await asyncio.sleep(0.01)
        before = selector.rounds
        await asyncio.sleep(0.1)
        rounds = selector.rounds - before
        near.close()
        await asyncio.sleep(0.01)
        far.close()
        return rounds

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        assert runner.run(story()) < 10


def test_a_fault_of_the_host_leaves_no_socket_behind() -> None:
    """A socket that nobody reads any more would wake the loop for ever."""

    class Faulty(Broker):
        def on_closed(self, connection: Connection, error: object) -> None:
            raise RuntimeError("the host's own")

    async def story() -> bytes:
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        broker = Faulty()
        connection = Connection(broker.core, broker, ConnectionSettings(), far.fileno())
        SocketPump(connection, far)
        near.send(b"HTTP/1.1")
        loop = asyncio.get_running_loop()
        answer = await loop.sock_recv(near, 1024)
        while chunk := await loop.sock_recv(near, 1024):
            answer += chunk
        near.close()
        await asyncio.sleep(0.01)
        assert far.fileno() < 0
        return answer

    assert asyncio.run(asyncio.wait_for(story(), 10)).startswith(b"AMQP")

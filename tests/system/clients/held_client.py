"""A client that brings connections into a state, says so, and stays there to be killed.

Arguments: the state, host:port, the address, and how many connections. It prints one line: `held`.
"""

from __future__ import annotations

import functools
import socket
import sys
import time
from typing import TYPE_CHECKING

from proton import Event, Handler, Message
from proton.reactor import Container
from proton.utils import BlockingConnection

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE_BODY_BYTES = 1_000_000
UNSETTLED = 20
HELD_FOR_S = 120
FLUSH_TIMEOUT_S = 2.0

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
TLS_HELLO_BEGUN = bytes.fromhex("16 0301 0200 01 0001fc 0303") + bytes(32)
WEBSOCKET_UPGRADE = (
    "GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: amqp\r\n\r\n"
)
SASL_ANONYMOUS = bytes.fromhex("0000001f 02010000 005341 d0 0000000f 00000001 a309") + b"ANONYMOUS"


HELD: list[object] = []
"""Everything opened: proton takes the handler from a receiver that nobody holds any more."""


class Watcher(Handler):
    """Counts the deliveries that begin to arrive; it takes and settles none."""

    def __init__(self) -> None:
        self.begun = 0

    def on_delivery(self, event: Event) -> None:
        """Count one."""
        self.begun += 1
        if event.delivery is not None and not event.delivery.partial and event.receiver is not None:
            event.receiver.advance()


def raw(host: str, sent: bytes) -> socket.socket:
    """Return a socket on which only these bytes were sent."""
    name, port = host.rsplit(":", 1)
    made = socket.create_connection((name, int(port)), timeout=10)
    made.sendall(sent)
    return made


def upgraded(host: str) -> socket.socket:
    """Return a WebSocket without a byte of AMQP."""
    made = raw(host, WEBSOCKET_UPGRADE.format(host=host).encode())
    answer = made.recv(4096)
    assert answer.startswith(b"HTTP/1.1 101 "), answer
    return made


@functools.cache
def shared_container() -> Container:
    """Return one container for all connections: each would make two TLS contexts."""
    return Container()


def opened(host: str) -> BlockingConnection:
    """Return an open connection."""
    return BlockingConnection(
        f"amqp://{host}", timeout=10, container=shared_container(), allowed_mechs="ANONYMOUS"
    )


def flush(connection: BlockingConnection) -> None:
    """Write what waits in the transport, which proton counts as sent, or what the socket takes."""
    assert connection.conn is not None
    transport = connection.conn.transport
    connection.container.timeout = 0.05
    deadline_s = time.monotonic() + FLUSH_TIMEOUT_S
    while transport is not None and transport.pending() > 0 and time.monotonic() < deadline_s:
        connection.container.process()


def attached(host: str, address: str) -> BlockingConnection:
    """Return a connection with a sender and a receiver."""
    connection = opened(host)
    connection.create_sender(address)
    HELD.append(connection.create_receiver(address, credit=10, handler=Watcher(), name="held"))
    flush(connection)
    return connection


def subscribed(host: str, address: str) -> BlockingConnection:
    """Return a connection with a receiver only."""
    connection = opened(host)
    HELD.append(connection.create_receiver(address, credit=10, handler=Watcher()))
    return connection


def asking(host: str, address: str) -> BlockingConnection:
    """Return a connection that waits for a reply to its own dynamic address."""
    connection = opened(host)
    replies = connection.create_receiver(None, credit=10, dynamic=True, handler=Watcher())
    relay = connection.create_sender(None)
    connection.wait(lambda: relay.credit > 0)
    reply_to = replies.remote_source.address
    relay.link.send(Message("anybody?", address=address, reply_to=reply_to))
    HELD.append(replies)
    flush(connection)
    return connection


def mid_transfer(host: str, address: str) -> BlockingConnection:
    """Return a connection on which half a delivery was sent."""
    connection = opened(host)
    sender = connection.create_sender(address)
    connection.wait(lambda: sender.credit > 0)
    delivery = sender.link.delivery("half")
    sender.link.stream(Message(bytes(LARGE_BODY_BYTES)).encode()[: LARGE_BODY_BYTES // 2])
    connection.wait(lambda: delivery.pending == 0)
    flush(connection)
    return connection


def mid_receive(host: str, address: str) -> BlockingConnection:
    """Return a connection that stopped to read in the middle of a delivery."""
    connection, watcher = opened(host), Watcher()
    HELD.append(connection.create_receiver(address, credit=1, handler=watcher))
    connection.wait(lambda: watcher.begun > 0)
    return connection


def unsettled_out(host: str, address: str) -> BlockingConnection:
    """Return a connection whose deliveries have no outcome yet."""
    connection = opened(host)
    sender = connection.create_sender(address)
    for number in range(UNSETTLED):
        connection.wait(lambda: sender.credit > 0)
        sender.link.send(Message(number))
    connection.wait(lambda: sender.queued == 0)
    flush(connection)
    return connection


def unsettled_in(host: str, address: str) -> BlockingConnection:
    """Return a connection that received and settled nothing."""
    connection, watcher = opened(host), Watcher()
    HELD.append(connection.create_receiver(address, credit=UNSETTLED, handler=watcher))
    connection.wait(lambda: watcher.begun >= UNSETTLED)
    return connection


STATES: dict[str, Callable[[str, str], object]] = {
    "connected": lambda host, _: raw(host, b""),
    "half-header": lambda host, _: raw(host, AMQP_HEADER[:3]),
    "half-hello": lambda host, _: raw(host, TLS_HELLO_BEGUN),
    "half-upgrade": lambda host, _: raw(host, WEBSOCKET_UPGRADE[:40].encode()),
    "upgraded": lambda host, _: upgraded(host),
    "sasl-begun": lambda host, _: raw(host, SASL_HEADER),
    "authenticated": lambda host, _: raw(host, SASL_HEADER + SASL_ANONYMOUS + AMQP_HEADER),
    "open": lambda host, _: opened(host),
    "attached": attached,
    "subscribed": subscribed,
    "asking": asking,
    "mid-transfer": mid_transfer,
    "mid-receive": mid_receive,
    "unsettled-out": unsettled_out,
    "unsettled-in": unsettled_in,
}


def main(state: str, host: str, address: str, count: str) -> None:
    """Hold `count` connections in the state."""
    HELD.extend(STATES[state](host, address) for _ in range(int(count)))
    sys.stdout.write("held\n")
    sys.stdout.flush()
    time.sleep(HELD_FOR_S)


if __name__ == "__main__":
    main(*sys.argv[1:])

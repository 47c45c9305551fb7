"""A relay under TLS on both sides, as Python's ssl does it: what a broker in Python cannot avoid.

    python tls_relay.py CERTIFICATE_AND_KEY AUTHORITY TARGET_PORT

It listens on a free loopback port, which it prints, and joins each connection with one to
TARGET_PORT. Towards the sender it is a TLS server, towards the receiver a TLS client, so each
byte is deciphered once and enciphered once, as in a broker. One thread, epoll, TCP_NODELAY. A TLS
record holds at most 16 KiB, so that is what a read yields; up to 256 KiB are gathered before they
are sent. Python's share is some microseconds a read, beside tens for the ciphers.
"""

from __future__ import annotations

import select
import socket
import ssl
import sys
from dataclasses import dataclass, field

READ_BYTES = 256 * 1024


@dataclass(slots=True)
class Direction:
    """Bytes on their way from one end to the other."""

    source: ssl.SSLSocket
    target: ssl.SSLSocket
    buffer: bytearray = field(default_factory=lambda: bytearray(READ_BYTES))
    start: int = 0
    end: int = 0

    def move(self) -> bool:
        """Move what can be moved; return whether bytes are left that the target did not take."""
        while self.drain():
            if not self.fill():
                return False
        return True

    def fill(self) -> bool:
        """Read what is there, up to the buffer's size; return whether anything was."""
        view = memoryview(self.buffer)
        self.start = self.end = 0
        try:
            while self.end < READ_BYTES:
                size = self.source.recv_into(view[self.end :])
                if size == 0:
                    raise ConnectionError("closed")
                self.end += size
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        return self.end > 0

    def drain(self) -> bool:
        """Send; return whether nothing is left."""
        view = memoryview(self.buffer)
        try:
            while self.start < self.end:
                self.start += self.target.send(view[self.start : self.end])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        return True


def prepare(plain: socket.socket) -> socket.socket:
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain


def join(server: socket.socket, port: int, ours: ssl.SSLContext, theirs: ssl.SSLContext) -> None:
    """Accept one connection and relays it until an end closes."""
    sender = ours.wrap_socket(prepare(server.accept()[0]), server_side=True)
    connected = prepare(socket.create_connection(("127.0.0.1", port)))
    receiver = theirs.wrap_socket(connected, server_hostname="127.0.0.1")
    sender.setblocking(False)
    receiver.setblocking(False)
    forth, back = Direction(sender, receiver), Direction(receiver, sender)
    epoll = select.epoll()
    epoll.register(sender, select.EPOLLIN)
    epoll.register(receiver, select.EPOLLIN)
    try:
        while True:
            blocked_forth, blocked_back = forth.move(), back.move()
            epoll.modify(sender, _events(is_owed=blocked_back, is_held=blocked_forth))
            epoll.modify(receiver, _events(is_owed=blocked_forth, is_held=blocked_back))
            epoll.poll()
    except OSError:
        sender.close()
        receiver.close()


def _events(*, is_owed: bool, is_held: bool) -> int:
    """Wait for room where bytes are owed to an end, for bytes unless some are held already."""
    return (select.EPOLLOUT if is_owed else 0) | (0 if is_held else select.EPOLLIN)


def main() -> None:
    certificate, authority, port = sys.argv[1:]
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    theirs = ssl.create_default_context(cafile=authority)
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    while True:
        join(server, int(port), ours, theirs)


if __name__ == "__main__":
    main()

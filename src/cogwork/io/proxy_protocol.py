"""Version 2 of the PROXY protocol: a load balancer says whose connection it passes on.

Theory of operation. The header stands before everything else, TLS included. Exactly its octets are
read from the socket, so that whoever takes over finds the first octet of the client next. It has a
deadline and a largest size, and nothing is sent before it has come. Version 1, which is text of no
fixed length, is not spoken.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.io.networks import PeerName

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("BODY_BYTES_MAX", "SIGNATURE", "ProxyHeader", "ProxyHeaderError", "body_size", "peer_in")

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"

HEAD_BYTES = 16
"""The signature, version and command, family and protocol, and the length of the rest."""

BODY_BYTES_MAX = 4096
"""Addresses take 216 octets at most; what follows them are TLVs, such as a client's certificate
by its name."""

VERSION_1 = b"PROXY "
LOCAL, PROXY = 0x20, 0x21
"""Version and command."""

UNSPECIFIED, TCP_IPV4, TCP_IPV6, UNIX_STREAM = 0x00, 0x11, 0x21, 0x31
UNKNOWN = PeerName("unknown", 0)
"""A client of which the load balancer cannot tell the address: no network holds it."""

_ADDRESS_BYTES = {UNSPECIFIED: 0, TCP_IPV4: 12, TCP_IPV6: 36, UNIX_STREAM: 216}
_UNIX_PATH_BYTES = 108


class ProxyHeaderError(CogworkError):
    """What came is no header of the PROXY protocol that is taken here."""


def body_size(head: bytes) -> int:
    """Return how many octets follow the first sixteen.

    Args:
        head: As much of them as has come: what cannot become a header is refused at once.

    Raises:
        ProxyHeaderError: It is none.
    """
    if head.startswith(VERSION_1[: len(head)]) and head[:1] == VERSION_1[:1]:
        raise ProxyHeaderError("version 1 of the PROXY protocol, and only version 2 is taken")
    if not SIGNATURE.startswith(head[: len(SIGNATURE)]):
        raise ProxyHeaderError(f"no PROXY header: it begins with {head[:12]!r}")
    if len(head) < HEAD_BYTES:
        return 0
    if head[12] not in (LOCAL, PROXY):
        raise ProxyHeaderError(f"a PROXY header of version and command {head[12]:#04x}")
    size = int.from_bytes(head[14:16], "big")
    if size > BODY_BYTES_MAX:
        raise ProxyHeaderError(f"a PROXY header of {size} bytes, where {BODY_BYTES_MAX} is most")
    if head[12] == PROXY:
        needed = _ADDRESS_BYTES.get(head[13])
        if needed is None:
            raise ProxyHeaderError(f"a PROXY header of family and protocol {head[13]:#04x}")
        if size < needed:
            raise ProxyHeaderError(f"a PROXY header of {size} bytes that needs {needed}")
    return size


def peer_in(head: bytes, body: bytes) -> PeerName | None:
    """Return whose connection it is; None for the load balancer's own.

    Args:
        head: The first sixteen octets, which `body_size` has taken.
        body: The rest; what follows the addresses is passed over.
    """
    if head[12] == LOCAL:
        return None
    if head[13] == UNSPECIFIED:
        return UNKNOWN
    if head[13] == TCP_IPV4:
        return PeerName(socket.inet_ntop(socket.AF_INET, body[:4]), _port(body[8:10]))
    if head[13] == TCP_IPV6:
        return PeerName(socket.inet_ntop(socket.AF_INET6, body[:16]), _port(body[32:34]))
    path = body[:_UNIX_PATH_BYTES].rstrip(b"\0")
    return PeerName(f"unix:{path.decode(errors='backslashreplace')}", 0)


def _port(data: bytes) -> int:
    return int.from_bytes(data, "big")


class ProxyHeader:
    """Waits for the header on one socket. Owned by the listener."""

    def __init__(
        self,
        sock: socket.socket,
        timeout_s: float,
        on_peer: Callable[[socket.socket, PeerName | None], None],
        on_fault: Callable[[socket.socket, str], None],
    ) -> None:
        """Start to read.

        Args:
            sock: Connected and non-blocking; goes to whichever of the two is called.
            timeout_s: How long the header may take.
            on_peer: Gets the socket, and whose it is.
            on_fault: Gets the socket, and what was wrong.
        """
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._on_peer = on_peer
        self._on_fault = on_fault
        self._data = b""
        self._wanted = HEAD_BYTES
        self._timer = self._loop.call_later(
            timeout_s, self._fail, f"nothing within {timeout_s:g} s"
        )
        self._loop.add_reader(sock.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        try:
            data = self._sock.recv(self._wanted - len(self._data))
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(error.strerror or "the connection was lost")
            return
        if not data:
            self._fail("the end of the connection")
            return
        self._data += data
        try:
            self._wanted = HEAD_BYTES + body_size(self._data[:HEAD_BYTES])
        except ProxyHeaderError as error:
            self._fail(str(error))
            return
        if len(self._data) == self._wanted:
            self._release()
            head, body = self._data[:HEAD_BYTES], self._data[HEAD_BYTES:]
            self._on_peer(self._sock, peer_in(head, body))

    def _fail(self, found: str) -> None:
        self._release()
        self._on_fault(self._sock, found)

    def _release(self) -> None:
        self._timer.cancel()
        self._loop.remove_reader(self._sock.fileno())

    def close(self) -> None:
        """Give the socket up, with the container."""
        self._release()
        self._sock.close()

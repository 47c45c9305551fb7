"""What a reader's process and its container say to each other, over a pair of sockets.

Theory of operation. The reader asks, the container answers, in any order; a number ties them
together. Unasked, with the number `LIVE`, the container says that it has traffic. A frame is its
length (four octets, big-endian) and a struct in MessagePack.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    import socket

__all__ = ("LIVE", "Ask", "Frames", "Told")

LENGTH_BYTES = 4
READ_BYTES = 1 << 18

LIVE = -1
"""The number of what is told because the container has traffic; questions count from 0 on."""

T = TypeVar("T")


class Ask(msgspec.Struct, array_like=True):
    """A question.

    Attributes:
        number: Stands in the answer.
        what: `ready`, `bounds` or `read`.
        vhost: The virtual host's name.
        stream: The stream's name.
        offset: From which one to read.
    """

    number: int
    what: str
    vhost: str = ""
    stream: str = ""
    offset: int = 0


class Told(msgspec.Struct, array_like=True):
    """An answer.

    Attributes:
        number: Of the question, or `LIVE`.
        error: `unknown`, `truncated`, `unavailable` or `failed`; empty where all is well.
        text: What went wrong.
        first: The oldest offset that is left.
        next: The offset after the last committed record.
        directory: Where the segments are; empty where there are none on this machine.
        sealed: The offset after them.
        chunks: What was read.
    """

    number: int
    error: str = ""
    text: str = ""
    first: int = 0
    next: int = 0
    directory: str = ""
    sealed: int = 0
    chunks: list[bytes] = []


class Frames:
    """One end of the pair."""

    def __init__(self, sock: socket.socket) -> None:
        """Take a socket over.

        Args:
            sock: Connected.
        """
        sock.setblocking(False)
        self._sock = sock
        self._sending = asyncio.Lock()
        self._rest = bytearray()

    def close(self) -> None:
        """Let the socket go."""
        self._sock.close()

    async def send(self, said: msgspec.Struct) -> None:
        """Send a frame.

        Raises:
            OSError: The other end has gone.
        """
        data = msgspec.msgpack.encode(said)
        async with self._sending:
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(self._sock, len(data).to_bytes(LENGTH_BYTES, "big") + data)

    async def receive(self, kind: type[T]) -> T | None:
        """Return the next frame; None where the other end has gone."""
        loop = asyncio.get_running_loop()
        rest = self._rest
        while True:
            size_bytes = LENGTH_BYTES + int.from_bytes(rest[:LENGTH_BYTES], "big")
            if len(rest) >= LENGTH_BYTES and len(rest) >= size_bytes:
                found = msgspec.msgpack.decode(bytes(rest[LENGTH_BYTES:size_bytes]), type=kind)
                del rest[:size_bytes]
                return found
            try:
                data = await loop.sock_recv(self._sock, READ_BYTES)
            except OSError:
                return None
            if not data:
                return None
            rest += data

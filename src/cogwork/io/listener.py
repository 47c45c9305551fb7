"""Accepts connections."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("ListenError", "Listener")

BACKLOG = 1024
"""Connections the kernel keeps for us while a batch runs."""

ACCEPTS_AT_ONCE = 64
"""Connections taken in one turn of the loop, so that those that work get theirs."""

RETRY_S = 0.5
"""When the process has no file descriptor left, accepting pauses for this long."""


class ListenError(CogworkError):
    """An address that cannot be listened on."""


class Listener:
    """A listening socket."""

    def __init__(self, host: str, port: int, on_accept: Callable[[socket.socket], None]) -> None:
        """Binds and starts to accept.

        Args:
            host: A name or an address.
            port: 0 for any free one.
            on_accept: Gets each connected, non-blocking socket, and owns it.

        Raises:
            ListenError: The port is taken, or the host is none of this machine's.
        """
        self._loop = asyncio.get_running_loop()
        self._on_accept = on_accept
        self._socket = _bind(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                sock, _address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._pause()
                return
            sock.setblocking(False)
            self._on_accept(sock)

    def _pause(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(RETRY_S, self._resume)

    def _resume(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Accepts no more."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it from the one that listens.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return sock

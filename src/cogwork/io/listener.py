"""Accepts connections."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.io.socket_file import SocketFile, check_path, remove_abandoned
from cogwork.io.tcp_options import set_tcp_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.io.descriptors import Descriptors

__all__ = ("ListenError", "Listener", "listening_path", "listening_socket", "reserved_socket")

BACKLOG = 1024
"""Connections the kernel keeps for us while a batch runs."""

ACCEPTS_AT_ONCE = 64
"""Connections taken in one turn of the loop, so that those that work get theirs."""

OWN_MODE = 0o600
"""Who may connect where nothing is said: processes of the same user."""

RETRY_S = 0.5
"""When the process has no file descriptor left, accepting pauses for this long."""

TURN_S = 0.002
"""For so long a process that took the last connection leaves the next one to the others."""

CROWD = 16
"""Connections that it takes then, at most: what still waits is more than they can take at once."""


class ListenError(CogworkError):
    """An address that cannot be listened on."""


class Listener:
    """A listening socket."""

    def __init__(
        self,
        sock: socket.socket,
        on_accept: Callable[[socket.socket], None],
        path: str | None = None,
        *,
        is_shared: bool = False,
        descriptors: Descriptors | None = None,
    ) -> None:
        """Start to accept.

        Args:
            sock: Listens; this object owns it.
            on_accept: Gets each connected, non-blocking socket, and owns it.
            path: The socket's file, where this object is to remove it in the end.
            is_shared: Whether other processes accept from this very socket, too. The kernel wakes
                them all, and may wake the same one first each time: so they take turns.
            descriptors: Says whether a connection may keep its descriptor; without, each may.
        """
        self._loop = asyncio.get_running_loop()
        self._on_accept = on_accept
        self._descriptors = descriptors
        self._socket = sock
        self._file = None if path is None else SocketFile(path)
        self._on_readable = self._take_turns if is_shared else self._accept
        self._was_last = False
        self._share = 1
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._on_readable)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._socket.getsockname()[1]
        return port

    def _accept(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            if not self._take():
                return

    def _take_turns(self) -> None:
        """Take one, or a share after the others had time to, where the last was taken here."""
        if self._was_last:
            self._share = CROWD
            self._pause(TURN_S)
            return
        while self._share and self._take():
            self._was_last = True
            self._share -= 1
        self._share = 1

    def _take(self) -> bool:
        """Accept one; tell whether one was there."""
        try:
            sock, _address = self._socket.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                self._admits(-1)
                self._pause(RETRY_S)
            return False
        if not self._admits(sock.fileno()):
            sock.close()
            return True
        sock.setblocking(False)
        self._on_accept(sock)
        return True

    def _admits(self, descriptor: int) -> bool:
        return self._descriptors is None or self._descriptors.admits(descriptor)

    def _pause(self, pause_s: float) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(pause_s, self._resume)

    def _resume(self) -> None:
        if self._socket.fileno() >= 0:
            self._was_last = False
            self._loop.add_reader(self._socket.fileno(), self._on_readable)

    def close(self) -> None:
        """Accept no more."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            if self._file is not None:
                self._file.remove()


def listening_socket(
    host: str, port: int, *, is_shared: bool = False, silence_s: float = 0.0
) -> socket.socket:
    """Listen on a port.

    Args:
        host: A name or an address.
        port: 0 for any free one.
        is_shared: Whether other processes of this user may listen there, too; the kernel shares
            the connections out.
        silence_s: How long a peer may acknowledge nothing; 0 for the usual time.

    Raises:
        ListenError: The port is taken, or the host is none of this machine's.
    """
    return _bound(host, port, is_shared=is_shared, listens=True, silence_s=silence_s)


def reserved_socket(host: str, port: int) -> socket.socket:
    """Take a port for processes that will share it; listen to nobody.

    Args:
        host: A name or an address.
        port: 0 for any free one.

    Raises:
        ListenError: Somebody listens there, even if it were ready to share.
    """
    probe = _bound(host, port, is_shared=False, listens=False)
    port = probe.getsockname()[1]
    probe.close()
    return _bound(host, port, is_shared=True, listens=False)


def listening_path(path: str, mode: int = OWN_MODE) -> socket.socket:
    """Listen on a Unix-domain socket, in the place of one that a dead process has left.

    Args:
        path: In a directory where nobody else can make files.
        mode: The permissions of its file: who may write to it may connect.

    Raises:
        ListenError: Somebody listens there, or the socket cannot be made.
    """
    sock = socket.socket(socket.AF_UNIX)
    try:
        check_path(path)
        remove_abandoned(path)
        sock.bind(path)
        Path(path).chmod(mode)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        reason = error.strerror or str(error)
        raise ListenError(f"cannot listen on {path}: {reason}") from error
    return sock


def _bound(
    host: str, port: int, *, is_shared: bool, listens: bool, silence_s: float = 0.0
) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit these from the one that listens.
        set_tcp_options(sock, silence_s)
        if is_shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
        if listens:
            sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return sock

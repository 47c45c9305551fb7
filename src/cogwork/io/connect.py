"""Opens sockets to others."""

from __future__ import annotations

import asyncio
import os
import socket

from cogwork.io.socket_file import check_path

__all__ = ("connected_path", "connected_socket", "reason_of")


async def connected_socket(host: str, port: int) -> socket.socket:
    """Connects to the first address of a host that answers.

    Args:
        host: A name or an address.
        port: The TCP port.

    Raises:
        OSError: None does; this is what the last one said.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    problem = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return await _connected(sock, address)
        except OSError as error:
            problem = error
    raise problem


async def connected_path(path: str) -> socket.socket:
    """Connects to a Unix-domain socket.

    Args:
        path: Of its file.

    Raises:
        OSError: Nobody listens there, or it can be no such path.
    """
    check_path(path)
    return await _connected(socket.socket(socket.AF_UNIX), path)


async def _connected(sock: socket.socket, address: str | tuple[object, ...]) -> socket.socket:
    """Connects a new socket, which is closed where that fails."""
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def reason_of(error: Exception) -> str:
    """Says what the system says; asyncio puts its own words in the place of that."""
    if isinstance(error, OSError):
        if error.errno is not None and error.errno > 0:
            return os.strerror(error.errno)
        return error.strerror or str(error)
    return str(error) or type(error).__name__

"""Opens sockets to others.

Theory of operation. A host may have several addresses, of which some do not answer: packets to them
are lost, and that takes longer than anybody waits. So each address gets a head start, and then the
next one is tried beside it (RFC 8305 §5); whichever answers first is taken.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Any

from cogwork.io.socket_file import check_path
from cogwork.io.tcp_options import set_tcp_options

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("connected_path", "connected_socket", "reason_of")

HEAD_START_S = 0.25
"""How long an address may be silent before the next one is tried, too."""


async def connected_socket(host: str, port: int, silence_s: float = 0.0) -> socket.socket:
    """Connect to the first address of a host that answers.

    Args:
        host: A name or an address.
        port: The TCP port.
        silence_s: How long the peer may acknowledge nothing; 0 for the usual time.

    Raises:
        OSError: None does; this is what the last one said. Or there can be no such host.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except ValueError as error:  # what cannot be a name is no error of the system
        raise OSError(f"this cannot be a host's name: {error}") from error
    waiting = deque(found)
    tasks: set[asyncio.Task[socket.socket]] = set()
    problem: BaseException = OSError(f"{host} has no address")
    try:
        while waiting or tasks:
            if waiting:
                tasks.add(loop.create_task(_connected_to(silence_s, *waiting.popleft())))
            done, _ = await asyncio.wait(
                tasks,
                timeout=HEAD_START_S if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                tasks.discard(task)
                problem = task.exception() or problem
                if task.exception() is None:
                    return task.result()
        raise problem
    finally:
        _give_up(tasks)


def _give_up(tasks: Iterable[asyncio.Task[socket.socket]]) -> None:
    """End attempts that nobody waits for any more, and what has come of them."""
    for task in tasks:
        if not task.cancel() and task.exception() is None:
            task.result().close()


async def _connected_to(
    silence_s: float,
    family: int,
    kind: int,
    protocol: int,
    _name: str,
    address: tuple[Any, ...],
) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    set_tcp_options(sock, silence_s)
    return await _connected(sock, address)


async def connected_path(path: str) -> socket.socket:
    """Connect to a Unix-domain socket.

    Args:
        path: Of its file.

    Raises:
        OSError: Nobody listens there, or it can be no such path.
    """
    check_path(path)
    return await _connected(socket.socket(socket.AF_UNIX), path)


async def _connected(sock: socket.socket, address: str | tuple[object, ...]) -> socket.socket:
    """Connect a new socket, which is closed where that fails."""
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def reason_of(error: Exception) -> str:
    """Return what the system says; asyncio puts its own words in the place of that."""
    if isinstance(error, OSError):
        if error.errno is not None and error.errno > 0:
            return os.strerror(error.errno)
        return error.strerror or str(error)
    return str(error) or type(error).__name__

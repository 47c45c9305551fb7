"""Every TCP socket of a process with linked containers and clients notices a dead peer."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import cogwork

from .linked import linked
from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

WEB = '[[listen]]\nport = 0\ntransport = "ws"\n[limits]\nidle_timeout_s = 30.0\n'


@contextmanager
def tcp_sockets(ports: Set[int]) -> Iterator[list[socket.socket]]:
    """Copy this process's TCP sockets that are bound to such ports, or connected to them."""
    with ExitStack() as stack:
        found = []
        for number in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):  # others come and go meanwhile
                sock = stack.enter_context(socket.socket(fileno=os.dup(number)))
                is_tcp = sock.family == socket.AF_INET and sock.type == socket.SOCK_STREAM
                if is_tcp and ports & ports_of(sock):
                    found.append(sock)
        yield found


def ports_of(sock: socket.socket) -> set[int]:
    """Return the ports of both ends; a socket that listens has one."""
    ports = {sock.getsockname()[1]}
    with suppress(OSError):
        ports.add(sock.getpeername()[1])
    return ports


@story
async def test_all_sockets_of_containers_and_clients_are_guarded() -> None:
    async with linked("a-b", configuration=WEB) as containers:
        urls = [url for each in containers.containers.values() for url in each.endpoints]
        web = next(url for url in containers.containers["a"].endpoints if url.startswith("ws:"))
        await containers.client("a")
        await containers.enter(cogwork.connect(web))
        with tcp_sockets({urlsplit(url).port or 0 for url in urls}) as found:
            # Four that listen, two connections of a link and two of clients, both ends of each.
            assert len(found) >= 12
            for sock in found:
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                bound_ms = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                # What a container accepts has its own idle time-out, what dials has the usual one.
                assert bound_ms in (30_000, 60_000)

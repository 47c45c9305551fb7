"""Every TCP socket of a process with linked containers and clients notices a dead peer."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import cogwork

from .linked import linked
from .stories import story

WEB = '[[listen]]\nport = 0\ntransport = "ws"\n[limits]\nidle_timeout_s = 30.0\n'


def tcp_sockets() -> dict[int, socket.socket]:
    """Return copies of this process's TCP sockets, by the numbers of the originals."""
    found = {}
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            sock = socket.socket(fileno=os.dup(number))
            if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
                found[number] = sock
            else:
                sock.close()
    return found


@story
async def test_all_sockets_of_containers_and_clients_are_guarded() -> None:
    before = tcp_sockets()
    async with linked("a-b", configuration=WEB) as containers:
        web = next(url for url in containers.containers["a"].endpoints if url.startswith("ws:"))
        await containers.client("a")
        await containers.enter(cogwork.connect(web))
        found = {number: each for number, each in tcp_sockets().items() if number not in before}
        # Four that listen, two connections of a link and two of clients, both ends of each.
        assert len(found) >= 12
        for sock in found.values():
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            bound_ms = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            # What a container accepts has its own idle time-out, what dials has the usual one.
            assert bound_ms in (30_000, 60_000)
            sock.close()
    for sock in before.values():
        sock.close()

"""Connections leave descriptors to files, and running out is told."""

from __future__ import annotations

import asyncio
import os
import socket

from cogwork.io.descriptors import Descriptors
from cogwork.io.listener import Listener, listening_socket


def test_connections_leave_a_reserve_and_running_out_is_told_once() -> None:
    told: list[str] = []
    descriptors = Descriptors(told.append, limit=64)
    assert descriptors.reserved == 8
    assert descriptors.admits(55)
    assert not descriptors.admits(56)
    assert not descriptors.admits(-1)
    assert descriptors.refused == 2
    assert len(told) == 1
    assert "64 are allowed" in told[0]
    assert "LimitNOFILE" in told[0]
    assert descriptors.admits(20)


def test_a_large_table_keeps_no_more_than_files_need() -> None:
    assert Descriptors(print, limit=1 << 20).reserved == 64


def test_a_client_that_is_refused_hears_so_at_once() -> None:
    async def story() -> None:
        free = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]  # not always consecutive
        for number in free:
            os.close(number)
        accepted: list[socket.socket] = []
        # The listener, two clients and one connection fit below the limit.
        descriptors = Descriptors(told.append, limit=max(free) + 96)
        descriptors.reserved = 95
        sock = listening_socket("127.0.0.1", 0)
        listener = Listener(sock, accepted.append, descriptors=descriptors)
        loop = asyncio.get_running_loop()
        clients: list[socket.socket] = []
        while not descriptors.refused:
            assert len(clients) < 10
            client = socket.socket()
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", listener.port))
            clients.append(client)
            await asyncio.sleep(0.05)
        assert await asyncio.wait_for(loop.sock_recv(clients[-1], 10), 30) == b""
        assert accepted
        for each in (*clients, *accepted):
            each.close()
        listener.close()

    told: list[str] = []
    asyncio.run(story())
    assert len(told) == 1

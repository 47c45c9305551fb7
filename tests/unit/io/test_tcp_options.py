"""Sockets of TCP notice a peer that vanished without a word."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from cogwork.io.connect import connected_path, connected_socket
from cogwork.io.listener import listening_path, listening_socket
from cogwork.io.tcp_options import KEEP_ALIVE_S_MAX, SILENCE_S, keep_alive_options, set_tcp_options

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.1"


def tcp_option(sock: socket.socket, option: int) -> int:
    return sock.getsockopt(socket.IPPROTO_TCP, option)


def assert_guarded(sock: socket.socket, silence_s: float = SILENCE_S) -> None:
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert tcp_option(sock, socket.TCP_NODELAY)
    idle_s = tcp_option(sock, socket.TCP_KEEPIDLE)
    probes_s = tcp_option(sock, socket.TCP_KEEPINTVL) * tcp_option(sock, socket.TCP_KEEPCNT)
    assert idle_s + probes_s <= silence_s
    assert tcp_option(sock, socket.TCP_USER_TIMEOUT) == silence_s * 1000


@pytest.mark.parametrize("silence_s", [0.0, 12.0, 600.0])
def test_both_ends_of_a_connection_are_guarded(silence_s: float) -> None:
    async def story() -> None:
        with listening_socket(HOST, 0, silence_s=silence_s) as server:
            client = await connected_socket(HOST, server.getsockname()[1], silence_s)
            accepted, _ = server.accept()
            with client, accepted:
                assert_guarded(client, silence_s or SILENCE_S)
                assert_guarded(accepted, silence_s or SILENCE_S)

    asyncio.run(story())


def test_unix_sockets_have_no_such_options(tmp_path: Path) -> None:
    async def story() -> None:
        path = str(tmp_path / "0")
        with listening_path(path) as server, await connected_path(path) as client:
            for sock in (server, client):
                assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    asyncio.run(story())


@pytest.mark.parametrize("silence_s", [0.001, 0.5, 1.0, 1e5, 8e6])
def test_the_system_takes_the_values_of_any_silence(silence_s: float) -> None:
    assert keep_alive_options(silence_s)[socket.TCP_KEEPIDLE] <= KEEP_ALIVE_S_MAX
    with socket.socket() as sock:
        set_tcp_options(sock, silence_s)
        assert tcp_option(sock, socket.TCP_USER_TIMEOUT) > 0

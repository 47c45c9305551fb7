"""Sockets that listen: ports that several processes share, and Unix-domain sockets."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cogwork.io.listener import (
    CROWD,
    Listener,
    ListenError,
    listening_path,
    listening_socket,
    reserved_socket,
)

if TYPE_CHECKING:
    from pathlib import Path

HOST = "127.0.0.1"


def port_of(sock: socket.socket) -> int:
    port: int = sock.getsockname()[1]
    return port


def test_a_reserved_port_is_for_those_who_share_it() -> None:
    with reserved_socket(HOST, 0) as held:
        port = port_of(held)
        with listening_socket(HOST, port, is_shared=True) as one:
            with listening_socket(HOST, port, is_shared=True) as other:
                assert port_of(one) == port_of(other) == port
            with pytest.raises(ListenError, match=f"cannot listen on {HOST}:{port}: .* in use"):
                listening_socket(HOST, port)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_port_where_somebody_listens_is_not_reserved(is_shared: bool) -> None:
    with (
        listening_socket(HOST, 0, is_shared=is_shared) as taken,
        pytest.raises(ListenError, match="in use"),
    ):
        reserved_socket(HOST, port_of(taken))


def test_nobody_is_answered_on_a_port_that_is_only_reserved() -> None:
    with reserved_socket(HOST, 0) as held, socket.socket() as client:
        assert client.connect_ex((HOST, port_of(held))) != 0


def test_a_unix_socket_takes_the_place_of_a_dead_one_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "0"
    listening_path(str(path)).close()
    assert path.is_socket()

    async def story() -> bytes:
        accepted: list[socket.socket] = []
        listener = Listener(listening_path(str(path)), accepted.append, str(path))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.send(b"hello")
            while not accepted:
                await asyncio.sleep(0.001)
            listener.close()
            with accepted[0] as sock:
                return sock.recv(5)

    assert asyncio.run(story()) == b"hello"
    assert not path.exists()


def accepted_in_turn(path: str, clients: int, *, closes_first: bool) -> list[int]:
    """Connect one client after another where two listeners share a socket, as processes do."""

    async def story() -> list[int]:
        takers: list[int] = []

        def taken(taker: int, sock: socket.socket) -> None:
            takers.append(taker)
            sock.close()

        held = listening_path(path)
        listeners = [
            Listener(sock, partial(taken, number), is_shared=True)
            for number, sock in enumerate((held, held.dup()))
        ]
        if closes_first:
            listeners[0].close()
        for number in range(clients):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                while len(takers) == number:
                    await asyncio.sleep(0.001)
        for each in listeners:
            each.close()
        return takers

    return asyncio.run(story())


def test_those_who_share_a_socket_take_turns(tmp_path: Path) -> None:
    takers = accepted_in_turn(str(tmp_path / "0"), 20, closes_first=False)
    assert min(takers.count(0), takers.count(1)) >= 5


def test_who_is_left_of_those_who_shared_a_socket_takes_all(tmp_path: Path) -> None:
    assert accepted_in_turn(str(tmp_path / "0"), 20, closes_first=True) == [1] * 20


def test_a_crowd_is_not_kept_waiting_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel keeps but so many: whoever comes then is turned away."""
    path, pauses = str(tmp_path / "0"), 0
    pause = Listener._pause

    def paused(listener: Listener, pause_s: float) -> None:
        nonlocal pauses
        pauses += 1
        pause(listener, pause_s)

    monkeypatch.setattr(Listener, "_pause", paused)

    async def story() -> None:
        accepted: list[socket.socket] = []
        clients = [socket.socket(socket.AF_UNIX) for _ in range(4 * CROWD)]
        listener = Listener(listening_path(path), accepted.append, path, is_shared=True)
        for client in clients:
            client.connect(path)
        while len(accepted) < len(clients):
            await asyncio.sleep(0.001)
        listener.close()
        for each in (*clients, *accepted):
            each.close()

    asyncio.run(story())
    assert 1 <= pauses <= 5


def test_a_unix_socket_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ListenError, match=r"/no/0: No such file or directory$"):
        listening_path(str(tmp_path / "no" / "0"))


def test_a_path_where_somebody_listens_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "0"
    with listening_path(str(path)) as held:
        with pytest.raises(ListenError, match=r"cannot listen on .*/0: Address already in use"):
            listening_path(str(path))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        held.accept()[0].close()


def test_a_path_whose_queue_is_full_is_taken(tmp_path: Path) -> None:
    path = str(tmp_path / "0")
    with socket.socket(socket.AF_UNIX) as held, socket.socket(socket.AF_UNIX) as client:
        held.bind(path)
        held.listen(0)
        client.connect(path)
        with pytest.raises(ListenError, match="Address already in use"):
            listening_path(path)


def test_a_file_that_is_no_socket_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(ListenError, match="there is a file that is no socket"):
        listening_path(str(path))
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("no/where", "No such file"), ("a" * 120, "a socket's path has at most 107 bytes")],
)
def test_a_path_that_cannot_be_is_told(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(ListenError, match=f"cannot listen on .*{reason}"):
        listening_path(str(tmp_path / name))


def test_only_its_user_may_connect_to_a_path_unless_another_mode_is_given(tmp_path: Path) -> None:
    path = tmp_path / "0"
    with listening_path(str(path)):
        assert path.stat().st_mode & 0o777 == 0o600
    with listening_path(str(path), 0o660):
        assert path.stat().st_mode & 0o777 == 0o660


def test_a_file_that_another_one_has_put_in_its_place_stays(tmp_path: Path) -> None:
    path = tmp_path / "0"

    async def story() -> None:
        listener = Listener(listening_path(str(path)), socket.socket.close, str(path))
        path.rename(tmp_path / "1")
        path.write_text("mine")
        listener.close()

    asyncio.run(story())
    assert path.read_text() == "mine"

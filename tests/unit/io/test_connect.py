"""Sockets to hosts with several addresses, of which some do not answer."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from cogwork.io import connect
from cogwork.io.connect import connected_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Listening = tuple[str, int]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Close what a test opens."""
    with ExitStack() as opened:
        yield opened


def listening(stack: ExitStack, host: str, port: int = 0) -> Listening:
    """Answer whoever connects."""
    server = stack.enter_context(socket.create_server((host, port)))
    return host, server.getsockname()[1]


def silent(stack: ExitStack, host: str, port: int) -> Listening:
    """Answer nobody: whoever waits to be accepted is one too many already."""
    server = stack.enter_context(socket.create_server((host, port), backlog=0))
    for _ in range(4):
        waiting = stack.enter_context(socket.socket())
        waiting.setblocking(False)
        waiting.connect_ex(server.getsockname())
    return host, port


def found(*addresses: Listening) -> Callable[..., object]:
    """Make a search that finds these addresses of any name."""

    async def search(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]

    return search


def reached(*addresses: Listening) -> str:
    """Connect to a host with these addresses; return which one was taken."""

    async def story() -> str:
        asyncio.get_running_loop().getaddrinfo = found(*addresses)  # type: ignore[method-assign, assignment]  # no name servers
        async with asyncio.timeout(30):
            sock = await connected_socket("several.example", 1)
        with sock:
            host: str = sock.getpeername()[0]
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "others are still tried"
        return host

    return asyncio.run(story())


def test_an_address_that_does_not_answer_keeps_nobody_from_the_next_one(stack: ExitStack) -> None:
    here = listening(stack, "127.0.0.1")
    nobody = silent(stack, "127.0.0.2", here[1])
    assert reached(nobody, here) == "127.0.0.1"


def test_the_first_address_that_answers_is_taken(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "HEAD_START_S", 10.0)
    here = listening(stack, "127.0.0.1")
    there = listening(stack, "127.0.0.2", here[1])
    refused = ("127.0.0.3", here[1])
    assert reached(there, here) == "127.0.0.2"
    assert reached(refused, there, here) == "127.0.0.2", "a refusal is waited for"


def test_what_the_last_address_says_is_told() -> None:
    with pytest.raises(ConnectionRefusedError):
        reached(("127.0.0.1", 1), ("127.0.0.2", 1))
    with pytest.raises(OSError, match=r"several\.example has no address"):
        reached()


@pytest.mark.parametrize("host", ["a" * 64 + ".b", "b..c"])
def test_what_can_be_no_name_is_told_so(host: str) -> None:
    with pytest.raises(OSError, match="this cannot be a host's name"):
        asyncio.run(connected_socket(host, 1))

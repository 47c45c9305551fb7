"""What is used before `async with` has opened it says so: it would wait for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork import Message
from cogwork.testing import container

from .stories import story

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Iterator

    from cogwork import Client


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with container() as running:
        yield running


async def first(messages: AsyncIterable[object]) -> object:
    """Take one message, as a loop does."""
    async for message in messages:
        return message
    return None


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.publish("topic/a", 1),
        lambda client: client.request("service/a", 1),
        lambda client: client.call("compute", "start"),
        lambda client: client.stream("orders").append([1]),
        lambda client: client.manage("READ", {"type": "container"}),
    ],
    ids=("publish", "request", "call", "append", "manage"),
)
@story
async def test_a_mesh_that_is_not_connected_says_so(
    url: str, use: Callable[[Client], Awaitable[object]]
) -> None:
    with pytest.raises(
        cogwork.NotOpened, match=r"`async with cogwork\.connect\(\.\.\.\) as client`"
    ):
        await use(cogwork.connect(url))


@pytest.mark.parametrize(
    "use",
    [
        lambda client: first(client.subscribe("topic/a")),
        lambda client: client.subscribe("topic/a").take(),
        lambda client: first(client.subscribe("topic/a").batches()),
        lambda client: anext(client.subscribe("topic/a")),
        lambda client: anext(client.consume("topic/a")),
        lambda client: anext(client.stream("topic/a").read("first")),
        lambda client: first(client.consume("topic/a")),
        lambda client: client.consume("topic/a").drain(),
        lambda client: client.browse("topic/a").drain(),
        lambda client: client.stream("topic/a").read("first").take(),
        lambda client: client.stream("topic/a").read("first").drain(),
        lambda client: client.publisher("topic/a").send(1),
        lambda client: client.publisher("topic/a").send_batch([1]),
        lambda client: client.publisher("topic/a").flush(),
        lambda client: client.publisher("topic/a").post(1),
        lambda client: client.publisher("topic/a").post_batch([1]),
        lambda client: client.publisher("topic/a").post_encoded([Message(1).encode()]),
        lambda client: client.stream("topic/a").publisher().send(1),
        lambda client: client.stream("topic/a").publisher().post(1),
        lambda client: client.stream("topic/a").publisher().post_batch([1]),
        lambda client: client.stream("topic/a").publisher().post_encoded([Message(1).encode()]),
    ],
)
@story
async def test_what_a_mesh_makes_is_opened_first(
    url: str, use: Callable[[Client], Awaitable[object]]
) -> None:
    async with cogwork.connect(url) as client:
        with pytest.raises(cogwork.NotOpened, match="a: not opened yet: `async with` does"):
            await use(client)


def test_so_it_is_without_asyncio(url: str) -> None:
    with cogwork.sync.connect(url) as client:
        for unopened in (client.subscribe("topic/a"), client.stream("topic/a").read("first")):
            with pytest.raises(cogwork.NotOpened, match="or `with`"):
                next(unopened)

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

    from cogwork import Mesh


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with container() as running:
        yield running


async def first(messages: AsyncIterable[object]) -> object:
    """Takes one message, as a loop does."""
    async for message in messages:
        return message
    return None


@pytest.mark.parametrize(
    "use",
    [
        lambda mesh: mesh.publish("topic/a", 1),
        lambda mesh: mesh.request("service/a", 1),
        lambda mesh: mesh.call("compute", "start"),
        lambda mesh: mesh.stream("orders").append([1]),
        lambda mesh: mesh.manage("READ", {"type": "container"}),
    ],
    ids=("publish", "request", "call", "append", "manage"),
)
@story
async def test_a_mesh_that_is_not_connected_says_so(
    url: str, use: Callable[[Mesh], Awaitable[object]]
) -> None:
    with pytest.raises(cogwork.NotOpened, match=r"`async with cogwork\.connect\(\.\.\.\) as mesh`"):
        await use(cogwork.connect(url))


@pytest.mark.parametrize(
    "use",
    [
        lambda mesh: first(mesh.subscribe("topic/a")),
        lambda mesh: mesh.subscribe("topic/a").take(),
        lambda mesh: first(mesh.subscribe("topic/a").batches()),
        lambda mesh: anext(mesh.subscribe("topic/a")),
        lambda mesh: anext(mesh.consume("topic/a")),
        lambda mesh: anext(mesh.stream("topic/a").read("first")),
        lambda mesh: first(mesh.consume("topic/a")),
        lambda mesh: mesh.consume("topic/a").drain(),
        lambda mesh: mesh.browse("topic/a").drain(),
        lambda mesh: mesh.stream("topic/a").read("first").take(),
        lambda mesh: mesh.stream("topic/a").read("first").drain(),
        lambda mesh: mesh.publisher("topic/a").send(1),
        lambda mesh: mesh.publisher("topic/a").send_batch([1]),
        lambda mesh: mesh.publisher("topic/a").flush(),
        lambda mesh: mesh.publisher("topic/a").post(1),
        lambda mesh: mesh.publisher("topic/a").post_batch([1]),
        lambda mesh: mesh.publisher("topic/a").post_encoded([Message(1).encode()]),
        lambda mesh: mesh.stream("topic/a").publisher().send(1),
        lambda mesh: mesh.stream("topic/a").publisher().post(1),
        lambda mesh: mesh.stream("topic/a").publisher().post_batch([1]),
        lambda mesh: mesh.stream("topic/a").publisher().post_encoded([Message(1).encode()]),
    ],
)
@story
async def test_what_a_mesh_makes_is_opened_first(
    url: str, use: Callable[[Mesh], Awaitable[object]]
) -> None:
    async with cogwork.connect(url) as mesh:
        with pytest.raises(cogwork.NotOpened, match="a: not opened yet: `async with` does"):
            await use(mesh)


def test_so_it_is_without_asyncio(url: str) -> None:
    with cogwork.sync.connect(url) as mesh:
        for unopened in (mesh.subscribe("topic/a"), mesh.stream("topic/a").read("first")):
            with pytest.raises(cogwork.NotOpened, match="or `with`"):
                next(unopened)

"""A consumer sees whether a stream is still the one that its position was taken in."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.inbox import AnotherStream, Inbox
from cogwork.plugin.engine.contract import FromOffset, Origin
from cogwork.testing import container

from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "orders"
ADDRESS = f"stream/{NAME}"
IN_MEMORY = f'[[stream]]\naddress = "{ADDRESS}"\n'


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    database = sqlite3.connect(":memory:")
    inbox = Inbox(database, "billing")
    inbox.create()
    yield inbox
    database.close()


async def consume(client: cogwork.Client, inbox: Inbox, count: int) -> list[object]:
    """Process so many records, and return their bodies."""
    stream = client.stream(NAME)
    taken: list[object] = []
    async with stream.read(await inbox.resume(stream)) as reader:
        async for record in reader:
            if inbox.take_record(stream.address, record):
                taken.append(record.body)
            if len(taken) == count:
                break
    return taken


async def append(client: cogwork.Client, *bodies: str) -> None:
    async with client.stream(NAME) as stream:
        await stream.append(bodies)


@story
async def test_a_consumer_goes_on_where_it_was(inbox: Inbox) -> None:
    async with container(IN_MEMORY) as url, cogwork.connect(url) as client:
        assert await inbox.resume(client.stream(NAME)) is Origin.FIRST
        assert await inbox.resume(client.stream(NAME), Origin.NEXT) is Origin.NEXT
        await append(client, "a", "b", "c")
        assert await consume(client, inbox, 2) == ["a", "b"]
        assert await consume(client, inbox, 1) == ["c"]
        assert await inbox.resume(client.stream(NAME)) == FromOffset(3)


@pytest.mark.parametrize("new", [["a", "b", "c"], ["a", "b", "c", "d", "e"]])
@story
async def test_a_stream_in_memory_that_begins_again_is_noticed(
    inbox: Inbox, new: list[str]
) -> None:
    async with container(IN_MEMORY) as url, cogwork.connect(url) as client:
        await append(client, "a", "b", "c")
        assert await consume(client, inbox, 3) == ["a", "b", "c"]
    async with container(IN_MEMORY) as url, cogwork.connect(url) as client:
        await append(client, *new)
        with pytest.raises(AnotherStream, match="record 2 is another"):
            await consume(client, inbox, 1)
        inbox.forget(ADDRESS)
        assert await consume(client, inbox, len(new)) == new


@story
async def test_a_stream_that_is_not_that_long_is_another_one(inbox: Inbox) -> None:
    async with container(IN_MEMORY) as url, cogwork.connect(url) as client:
        await append(client, "a", "b", "c")
        await consume(client, inbox, 3)
        assert await inbox.resume(client.stream(NAME)) == FromOffset(3)
    async with container(IN_MEMORY) as url, cogwork.connect(url) as client:
        for body in ("d", "e", "f"):
            with pytest.raises(AnotherStream, match="record 2 is another one, or none"):
                await inbox.resume(client.stream(NAME))
            await append(client, body)
        with pytest.raises(AnotherStream):
            await inbox.resume(client.stream(NAME))


@story
async def test_what_was_given_up_needs_no_comparison(inbox: Inbox) -> None:
    async with container(IN_MEMORY) as url, cogwork.connect(url) as client:
        await append(client, "a", "b", "c")
        await consume(client, inbox, 2)
        await client.manage("TRIM", {"type": "stream", "name": ADDRESS, "before": 2})
        assert await inbox.resume(client.stream(NAME)) == FromOffset(2)
        assert await consume(client, inbox, 1) == ["c"]


@story
async def test_a_stream_that_was_made_anew_is_noticed(inbox: Inbox) -> None:
    made = {"type": "stream", "name": ADDRESS}
    async with container() as url, cogwork.connect(url) as client:
        await client.manage("CREATE", made)
        await append(client, "a", "b")
        assert await consume(client, inbox, 2) == ["a", "b"]
        await client.manage("DELETE", made)
        await client.manage("CREATE", made)
        await append(client, "c", "d", "e")
        with pytest.raises(AnotherStream, match="record 1 is another"):
            await consume(client, inbox, 1)

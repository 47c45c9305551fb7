"""Receivers with selectors, and messages that do not fit a frame."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import cogwork
import cogwork.testing

from .stories import story

if TYPE_CHECKING:
    from collections.abc import Iterator

RED: dict[str, object] = {"colour": "red"}
BLUE: dict[str, object] = {"colour": "blue"}
SIZES = (1_000, 40_000, 200_000)

SMALL_FRAMES = """
[limits]
max_frame_size_bytes = 4096
[[address]]
prefix = "one"
distribution = "closest"
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container() as found:
        yield found


@pytest.mark.parametrize("address", ["topic/a", "broadcast/a", "service/a", "queue/a"])
def test_a_selector_sees_the_properties_of_large_messages(url: str, address: str) -> None:
    @story
    async def told() -> None:
        async with (
            cogwork.connect(url) as client,
            client.subscribe(address, selector="colour = 'red'") as red,
            client.subscribe(address, selector="colour = 'blue'") as blue,
        ):
            for size in SIZES:
                for properties in (RED, BLUE):
                    await client.publish(address, bytes(size), properties=properties, timeout_s=10)
            for messages in (red, blue):
                assert [each.body for each in await messages.take(3)] == [bytes(n) for n in SIZES]

    told()


def test_what_waited_in_parts_goes_to_who_wants_it(url: str) -> None:
    @story
    async def told() -> None:
        async with cogwork.connect(url) as client, client.consume("service/b", credit=1) as busy:
            await client.publish("service/b", "has all its credit", settled=True)
            async with client.publisher("service/b") as publisher:
                post = publisher.post(cogwork.Message(bytes(100_000), properties=RED))
                async with client.subscribe("service/b", selector="colour = 'red'") as red:
                    assert [each.body for each in await red.take(1)] == [bytes(100_000)]
                    await post
            assert busy.waiting == 1

    told()


@pytest.mark.parametrize("selector", [None, "size = 'large'"])
def test_a_large_message_that_waits_comes_whole_whoever_takes_it(selector: str | None) -> None:
    """It is larger than what a session may have held, and has begun before anybody had room."""

    @story
    async def told() -> None:
        body = b"x" * 30_000_000
        async with (
            cogwork.testing.container(SMALL_FRAMES) as place,
            cogwork.connect(place) as sender,
            cogwork.connect(place) as receiver,
            cogwork.connect(place) as other,
            other.consume("one/a", credit=1) as busy,
        ):
            first = asyncio.create_task(sender.publish("one/a", b"first"))
            await busy.take(1)
            large = asyncio.create_task(sender.publish("one/a", body, properties={"size": "large"}))
            await asyncio.sleep(0.5)
            async with receiver.consume("one/a", credit=10, selector=selector) as chosen:
                async with asyncio.timeout(20):
                    (found,) = await chosen.take(1)
                assert found.body == body
                chosen.accept([found])
                await large
            first.cancel()

    told()

"""What nobody takes goes to the dead-letter address, where there is one, with the reason."""

import asyncio

import pytest

import cogwork
from cogwork import testing

CONFIGURATION = """
[[address]]
prefix = "topic"
dead_letter = "queue/dead"

[[address]]
prefix = "anycast"
dead_letter = "queue/dead"
"""


@pytest.mark.parametrize("address", ["topic/nobody.here", "anycast/nobody"])
def test_an_unroutable_message_is_found_among_the_dead(address: str) -> None:
    async def story(url: str) -> cogwork.Item:
        async with cogwork.connect(url) as mesh:
            await mesh.publish(address, "lost?")
            async with mesh.consume("queue/dead") as items:
                item = await asyncio.wait_for(anext(items), 5)
                await item.accept()
                return item

    with testing.container(CONFIGURATION) as url:
        item = asyncio.run(story(url))
    assert item.body == "lost?"
    assert item.annotations["x-opt-dead-letter-reason"] == "unroutable"
    assert item.annotations["x-opt-dead-letter-source"] == address


def test_without_a_dead_letter_address_it_is_given_back() -> None:
    async def story(url: str) -> None:
        async with cogwork.connect(url) as mesh:
            await mesh.publish("anycast/nobody", "lost?")

    with testing.container() as url, pytest.raises(cogwork.CogworkError):
        asyncio.run(story(url))

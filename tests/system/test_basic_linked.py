"""Messages of AMQP 0-9-1 on their way to clients of other containers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pika
import pytest

import cogwork

from .basic_clients import basic_channel, taken
from .meshes import linked, meshed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .meshes import Member

PROPERTIES = pika.BasicProperties(
    content_type="text/plain", headers={"a": 1, "x-b": "two"}, delivery_mode=2, message_id="m"
)
LARGE = b"x" * 300_000


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    folder: Path = tmp_path_factory.mktemp("linked")
    with meshed(folder, "ab", ["ab"]) as found:
        linked(found.values())
        yield found


def check(message: cogwork.Message, body: bytes) -> None:
    assert message.body == body
    assert (message.durable, message.message_id, message.content_type) == (True, "m", "text/plain")
    assert message.properties == {"a": 1}
    assert message.annotations["x-b"] == "two"


@pytest.mark.parametrize("body", [b"small", LARGE])
def test_a_consumer_elsewhere_gets_an_item_of_a_queue(
    members: dict[str, Member], body: bytes
) -> None:
    async def take() -> None:
        async with (
            cogwork.connect(members["b"].url) as client,
            client.consume("queue/far", credit=5) as items,
        ):
            async for item in items:
                check(item, body)
                assert item.subject == "far"
                await item.accept()
                return

    with basic_channel(members["a"].served) as channel:
        channel.confirm_delivery()
        channel.queue_declare("far")
        for _ in range(3):
            channel.basic_publish("", "far", body, PROPERTIES)
        for _ in range(3):
            asyncio.run(asyncio.wait_for(take(), 20))
        assert channel.queue_declare("far", passive=True).method.message_count == 0
        channel.queue_delete("far")


def test_what_a_client_elsewhere_sends_is_taken_by_0_9_1(members: dict[str, Member]) -> None:
    async def send() -> None:
        async with (
            cogwork.connect(members["b"].url) as client,
            client.publisher("exchange/amq.fanout") as publisher,
        ):
            await publisher.send(cogwork.Message("text", message_id="m", properties={"a": 1}))

    with basic_channel(members["b"].served) as channel:
        channel.queue_declare("near", exclusive=True)
        channel.queue_bind("near", "amq.fanout")
        asyncio.run(asyncio.wait_for(send(), 20))
        ((_, properties, body),) = taken(channel, "near", 1, auto_ack=True)
        assert (body, properties.message_id, properties.headers) == (b"text", "m", {"a": 1})

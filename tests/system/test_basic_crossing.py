"""Messages that cross between AMQP 0-9-1 and AMQP 1.0, by the same queues and exchanges."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pika
import pytest

import cogwork

from .basic_clients import basic_channel, basic_connection, taken
from .served import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .served import Served


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("basic")) as running:
        yield running


def test_what_pika_publishes_a_client_of_1_0_takes(container: Served) -> None:
    properties = pika.BasicProperties(
        content_type="text/plain", message_id="m-1", correlation_id="c-1", headers={"a": 1}
    )
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        channel.queue_declare("crossing", durable=True)
        channel.basic_publish("", "crossing", b"hello", properties)

    async def take() -> cogwork.Item:
        async with (
            cogwork.connect(container.url) as client,
            client.consume("queue/crossing") as items,
        ):
            item = await asyncio.wait_for(anext(aiter(items)), 10)
            await item.accept()
            return item

    item = asyncio.run(take())
    assert item.body == b"hello"
    assert (item.message_id, item.correlation_id, item.content_type) == ("m-1", "c-1", "text/plain")
    assert item.properties["a"] == 1
    with basic_channel(container) as channel:
        assert channel.queue_declare("crossing", durable=True).method.message_count == 0


def test_what_a_client_of_1_0_publishes_pika_takes(container: Served) -> None:
    async def publish() -> None:
        async with cogwork.connect(container.url) as client:
            await client.publish("queue/back", "text")
            await client.publish("exchange/amq.topic/a.b", b"octets")

    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.queue_declare("back", durable=True)
        channel.queue_bind("back", "amq.topic", "a.#")
        asyncio.run(publish())
        found = taken(channel, "back", 2, auto_ack=True)
        assert [body for _, _, body in found] == [b"text", b"octets"]
        assert found[1][0].routing_key == "a.b"


def test_a_queue_of_1_0_is_found_by_0_9_1(container: Served) -> None:
    options = ("maximum_length=9", "maximum_length_policy=drop-oldest")
    said = [word for option in options for word in ("--option", option)]
    container.run("queue", "declare", container.url, "queue/older", *said)
    with basic_channel(container) as channel:
        channel.queue_declare("older", passive=True)
        channel.queue_declare(
            "older", durable=True, arguments={"x-max-length": 9, "x-overflow": "drop-head"}
        )
        channel.queue_delete("older")

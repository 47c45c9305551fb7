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


@pytest.mark.parametrize("manner", ["auto-ack", "prefetch", "channel-prefetch"])
def test_a_consumer_of_0_9_1_gets_items_from_elsewhere(
    members: dict[str, Member], manner: str
) -> None:
    """Both containers have a part of the queue, and the consumer's is empty."""
    with (
        basic_channel(members["a"].served) as publisher,
        basic_channel(members["b"].served) as channel,
    ):
        for each in (publisher, channel):
            each.queue_declare("shared", durable=True)
        publisher.confirm_delivery()
        for number in range(100):
            publisher.basic_publish("", "shared", b"%d" % number, PROPERTIES)
        if manner != "auto-ack":
            channel.basic_qos(prefetch_count=7, global_qos=manner == "channel-prefetch")
        bodies: list[int] = []
        for method, properties, body in channel.consume(
            "shared", auto_ack=manner == "auto-ack", inactivity_timeout=10
        ):
            assert method is not None, f"{len(bodies)} came"
            assert (method.routing_key, properties.headers) == ("shared", PROPERTIES.headers)
            assert not method.redelivered
            bodies.append(int(body))
            if manner != "auto-ack":
                channel.basic_ack(method.delivery_tag)
            if len(bodies) == 100:
                break
        assert bodies == list(range(100))
        channel.cancel()
        for each in (publisher, channel):
            assert each.queue_declare("shared", passive=True).method.message_count == 0
            each.queue_delete("shared")


def test_what_is_not_acknowledged_goes_back_to_where_it_came_from(
    members: dict[str, Member],
) -> None:
    with basic_channel(members["a"].served) as publisher:
        publisher.confirm_delivery()
        publisher.queue_declare("back", durable=True)
        for number in range(5):
            publisher.basic_publish("", "back", b"%d" % number)
        with basic_channel(members["b"].served) as channel:
            channel.queue_declare("back", durable=True)
            found = taken(channel, "back", 5)
            assert [int(body) for _, _, body in found] == list(range(5))
            channel.basic_ack(found[1][0].delivery_tag)
            channel.basic_reject(found[2][0].delivery_tag, requeue=False)
        again = taken(publisher, "back", 3)
        assert [int(body) for _, _, body in again] == [0, 3, 4]
        assert all(method.redelivered for method, _, _ in again)
        publisher.cancel()
        publisher.queue_delete("back")


def test_a_cancelled_consumer_may_still_acknowledge_what_came_from_elsewhere(
    members: dict[str, Member],
) -> None:
    with (
        basic_channel(members["a"].served) as publisher,
        basic_channel(members["b"].served) as channel,
    ):
        for each in (publisher, channel):
            each.queue_declare("late", durable=True)
        publisher.confirm_delivery()
        for number in range(3):
            publisher.basic_publish("", "late", b"%d" % number)
        found: list[int] = []
        tag = channel.basic_consume(
            "late", lambda _c, method, *_: found.append(method.delivery_tag)
        )
        while len(found) < 3:
            channel.connection.process_data_events(1)
        channel.basic_cancel(tag)
        channel.connection.sleep(0.5)
        channel.basic_ack(0, multiple=True)
        channel.connection.sleep(1.0)
        assert publisher.queue_declare("late", passive=True).method.message_count == 0
        assert publisher.basic_get("late") == (None, None, None)
        for each in (publisher, channel):
            each.queue_delete("late")

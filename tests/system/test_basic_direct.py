"""What publishers of AMQP 0-9-1 do again and again: it goes without Python, and means the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

import cogwork

from .basic_clients import basic_channel, basic_connection, taken
from .served import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .served import Served

COUNT = 2_000


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("direct")) as running:
        yield running


@pytest.mark.parametrize("is_confirming", [False, True])
def test_many_messages_come_in_order_with_all_they_say(
    container: Served, is_confirming: bool
) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.queue_declare("many", exclusive=True)
        publisher = connection.channel()
        if is_confirming:
            publisher.confirm_delivery()
        for number in range(COUNT if not is_confirming else 200):
            properties = pika.BasicProperties(headers={"n": number}, message_id=str(number))
            publisher.basic_publish("", "many", b"%d" % number, properties)
        count = COUNT if not is_confirming else 200
        found = taken(channel, "many", count, auto_ack=True)
        assert [int(body) for _, _, body in found] == list(range(count))
        assert [properties.headers["n"] for _, properties, _ in found] == list(range(count))
        assert {method.routing_key for method, _, _ in found} == {"many"}


def test_plain_and_mandatory_messages_are_confirmed_in_one_count(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        channel.queue_declare("mixed", exclusive=True)
        for number in range(50):
            channel.basic_publish("", "mixed", b"%d" % number, mandatory=number % 3 == 0)
            with pytest.raises(UnroutableError):
                channel.basic_publish("", "nowhere", b"", mandatory=True)
        found = taken(channel, "mixed", 50, auto_ack=True)
        assert [int(body) for _, _, body in found] == list(range(50))


def test_a_queue_that_refuses_nacks_what_came_directly(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        arguments = {"x-max-length": 3, "x-overflow": "reject-publish"}
        channel.queue_declare("full", exclusive=True, arguments=arguments)
        for _ in range(3):
            channel.basic_publish("", "full", b"")
        with pytest.raises(NackError):
            channel.basic_publish("", "full", b"")


def test_an_exchange_that_was_deleted_is_missed_at_once(container: Served) -> None:
    with basic_connection(container) as connection:
        other = connection.channel()
        other.exchange_declare("passing", "fanout")
        channel = connection.channel()
        channel.confirm_delivery()
        for _ in range(5):
            channel.basic_publish("passing", "", b"")
        other.exchange_delete("passing")
        with pytest.raises(ChannelClosedByBroker, match=r"404.*passing"):
            channel.basic_publish("passing", "", b"")


def test_bindings_that_change_are_heeded_at_once(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        channel.exchange_declare("changing", "topic", auto_delete=True)
        channel.queue_declare("one", exclusive=True)
        channel.queue_declare("two", exclusive=True)
        channel.queue_bind("one", "changing", "a.*")
        channel.basic_publish("changing", "a.b", b"1")
        channel.queue_bind("two", "changing", "#")
        channel.basic_publish("changing", "a.b", b"2")
        channel.queue_unbind("one", "changing", "a.*")
        channel.basic_publish("changing", "a.b", b"3")
        assert [body for _, _, body in taken(channel, "one", 2, auto_ack=True)] == [b"1", b"2"]
        channel.cancel()
        assert [body for _, _, body in taken(channel, "two", 2, auto_ack=True)] == [b"2", b"3"]


def test_a_rejected_message_says_how_it_died(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.exchange_declare("dead", "direct", auto_delete=True)
        channel.queue_declare("graves", exclusive=True)
        channel.queue_bind("graves", "dead", "orders")
        arguments = {"x-dead-letter-exchange": "dead"}
        channel.queue_declare("orders", exclusive=True, arguments=arguments)
        properties = pika.BasicProperties(headers={"own": "header"}, content_type="text/plain")
        for _ in range(3):
            channel.basic_publish("", "orders", b"body", properties)
        for _ in range(3):
            method, _, _ = channel.basic_get("orders")
            assert method is not None
            channel.basic_reject(method.delivery_tag, requeue=False)
        for method, found, body in taken(channel, "graves", 3, auto_ack=True):
            assert (method.exchange, method.routing_key, body) == ("dead", "orders", b"body")
            assert (found.content_type, found.headers["own"]) == ("text/plain", "header")
            (death,) = found.headers["x-death"]
            assert (death["queue"], death["reason"], death["count"]) == ("orders", "rejected", 1)
            assert (death["exchange"], death["routing-keys"]) == ("", ["orders"])
            assert found.headers["x-first-death-queue"] == "orders"


def test_a_dead_letter_goes_by_a_key_of_any_octets(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.exchange_declare("the/dead", "topic", auto_delete=True)
        channel.queue_declare("graves/2", exclusive=True)
        channel.queue_bind("graves/2", "the/dead", "é.#")
        arguments = {"x-dead-letter-exchange": "the/dead", "x-dead-letter-routing-key": "é.x/y"}
        channel.queue_declare("living", exclusive=True, arguments=arguments)
        channel.queue_declare("living", exclusive=True, arguments=arguments)
        channel.basic_publish("", "living", b"body")
        method, _, _ = channel.basic_get("living")
        assert method is not None
        channel.basic_reject(method.delivery_tag, requeue=False)
        ((found, _, body),) = taken(channel, "graves/2", 1, auto_ack=True)
        assert (found.exchange, found.routing_key, body) == ("the/dead", "é.x/y", b"body")


def test_both_protocols_have_one_queue(container: Served) -> None:
    async def exchange(sent: str) -> cogwork.Item:
        async with cogwork.connect(container.url) as client:
            async with client.publisher("queue/both") as publisher:
                await publisher.send(cogwork.Message(sent, properties={"n": 1}))
            async with client.consume("queue/both", credit=1) as items:
                async for item in items:
                    await item.accept()
                    return item
        raise AssertionError

    with basic_channel(container) as channel:
        channel.queue_declare("both", auto_delete=False)
        properties = pika.BasicProperties(headers={"x-a": "b", "c": 2}, message_id="m")
        channel.basic_publish("", "both", b"by 0-9-1", properties)
        channel.basic_publish("", "both", b"more", properties)
        found = asyncio.run(exchange("by 1.0"))
        assert (found.body, found.message_id, found.subject) == (b"by 0-9-1", "m", "both")
        assert found.properties == {"c": 2}
        assert found.annotations["x-a"] == "b"
        bodies = taken(channel, "both", 2, auto_ack=True)
        assert [body for _, _, body in bodies] == [b"more", b"by 1.0"]
        assert bodies[1][1].headers["n"] == 1
        channel.cancel()
        channel.queue_delete("both")

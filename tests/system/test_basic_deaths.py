"""Dead letters by AMQP 0-9-1: in circles, of full queues, and of queues without any room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import NackError

from .basic_clients import basic_channel, taken
from .served import served, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel

    from .served import Served


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("deaths")
    with served(folder, head=f'data_dir = "{folder}/data"\n') as running:
        yield running


@pytest.fixture
def channel(container: Served) -> Iterator[BlockingChannel]:
    with basic_channel(container) as opened:
        yield opened


def _declare(channel: BlockingChannel, name: str, dead: str, *, durable: bool, **more: Any) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    arguments |= {f"x-{key.replace('_', '-')}": value for key, value in more.items()}
    channel.queue_declare(name, durable=durable, arguments=arguments)


def _count(channel: BlockingChannel, name: str) -> int:
    count: int = channel.queue_declare(name, passive=True).method.message_count
    return count


@pytest.mark.parametrize("is_durable", [False, True])
def test_what_would_go_round_for_ever_is_dropped(
    channel: BlockingChannel, is_durable: bool
) -> None:
    channel.queue_declare("witness", exclusive=True)
    channel.exchange_declare("round", "fanout", auto_delete=True)
    _declare(channel, "a", "b", message_ttl=50, durable=is_durable)
    arguments = {"x-dead-letter-exchange": "round", "x-message-ttl": 50}
    channel.queue_declare("b", durable=is_durable, arguments=arguments)
    for name in ("a", "witness"):
        channel.queue_bind(name, "round")
    channel.basic_publish("", "a", b"round")
    within(10, lambda: _count(channel, "witness") == 1, "it has not died in b")
    channel.basic_publish("", "a", b"the next one")
    within(10, lambda: _count(channel, "witness") >= 2, "the next one has not died in b")
    assert _count(channel, "witness") == 2, "the first one has died in b again"
    for name in ("a", "b"):
        channel.queue_delete(name)


def test_what_a_consumer_has_rejected_goes_round(channel: BlockingChannel) -> None:
    _declare(channel, "work", "wait", durable=False)
    _declare(channel, "wait", "work", durable=False, message_ttl=50)
    channel.basic_publish("", "work", b"retried")
    for count in range(3):
        method, properties, _ = taken(channel, "work", 1)[0]
        deaths = (properties.headers or {}).get("x-death", [])
        assert [death["count"] for death in deaths] == ([count, count] if count else [])
        channel.basic_nack(method.delivery_tag, requeue=False)
        channel.cancel()
    channel.queue_delete("work")
    channel.queue_delete("wait")


@pytest.mark.parametrize("is_durable", [False, True])
def test_what_a_full_queue_refuses_is_dead_and_its_publisher_told(
    channel: BlockingChannel, is_durable: bool
) -> None:
    channel.queue_declare("refused")
    more = {"max_length": 1, "overflow": "reject-publish-dlx"}
    _declare(channel, "full", "refused", durable=is_durable, **more)
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=2)
    channel.basic_publish("", "full", b"first", persistent)
    with pytest.raises(NackError):
        channel.basic_publish("", "full", b"second", persistent)
    _, properties, body = taken(channel, "refused", 1, auto_ack=True)[0]
    channel.cancel()
    assert (properties.headers["x-death"][0]["reason"], body) == ("maxlen", b"second")
    assert [body for _, _, body in taken(channel, "full", 1, auto_ack=True)] == [b"first"]
    channel.cancel()
    for name in ("full", "refused"):
        channel.queue_delete(name)


def test_a_queue_without_room_has_messages_for_those_who_wait(channel: BlockingChannel) -> None:
    channel.queue_declare("late")
    _declare(channel, "none", "late", durable=False, max_length=0)
    channel.basic_publish("", "none", b"nobody waits")
    within(10, lambda: _count(channel, "late") == 1, "no dead letter")
    found: list[bytes] = []
    channel.basic_consume("none", lambda *got: found.append(got[3]), auto_ack=True)
    channel.basic_publish("", "none", b"somebody waits")

    def has_come() -> bool:
        channel.connection.process_data_events(0.01)
        return found == [b"somebody waits"]

    within(10, has_come, "it has not come")
    assert _count(channel, "late") == 1


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("expiration", [None, "0"])
def test_what_has_no_time_goes_to_a_consumer_or_is_dead_at_once(
    channel: BlockingChannel, is_durable: bool, expiration: str | None
) -> None:
    channel.queue_declare("over")
    more = {} if expiration else {"message_ttl": 0}
    _declare(channel, "instant", "over", durable=is_durable, **more)
    properties = pika.BasicProperties(expiration=expiration, delivery_mode=2)
    channel.basic_publish("", "instant", b"nobody is there", properties)
    assert channel.basic_get("instant", auto_ack=True)[2] is None
    assert channel.basic_get("over", auto_ack=True)[2] == b"nobody is there"
    found: list[tuple[int, bytes]] = []
    channel.basic_consume("instant", lambda *got: found.append((got[1].delivery_tag, got[3])))
    channel.basic_publish("", "instant", b"somebody is", properties)

    def has_come() -> bool:
        channel.connection.process_data_events(0.01)
        return [body for _, body in found] == [b"somebody is"]

    within(10, has_come, "it has not come")
    channel.basic_nack(found[0][0])
    assert channel.basic_get("over", auto_ack=True)[2] == b"somebody is"
    for name in ("over", "instant"):
        channel.queue_delete(name)


@pytest.mark.parametrize("is_durable", [False, True])
def test_what_was_rejected_is_found_by_the_next_get(
    channel: BlockingChannel, is_durable: bool
) -> None:
    channel.queue_declare("refuse")
    _declare(channel, "tasks", "refuse", durable=is_durable)
    for number in range(20):
        channel.basic_publish("", "tasks", b"%d" % number)
        method, _, body = channel.basic_get("tasks")
        assert body == b"%d" % number
        channel.basic_reject(method.delivery_tag, requeue=False)
        assert channel.basic_get("refuse", auto_ack=True)[2] == body
    for name in ("tasks", "refuse"):
        channel.queue_delete(name)


def test_a_dead_letter_is_what_was_published(channel: BlockingChannel) -> None:
    channel.queue_declare("found")
    _declare(channel, "mortal", "found", durable=False)
    headers = {"n": 1, "big": 2**40, "x-own": [1, "two"], "table": {"a": b"\xff"}, "b": b"\x00"}
    given = pika.BasicProperties(
        headers=headers,
        content_type="text/\u00fc",
        priority=4,
        timestamp=1_700_000_000,
        expiration="60000",
        type="t",
    )
    channel.basic_publish("", "mortal", b"\xff\x00", given)
    tag = channel.basic_get("mortal")[0].delivery_tag
    channel.basic_reject(tag, requeue=False)
    _, properties, body = channel.basic_get("found", auto_ack=True)
    assert body == b"\xff\x00"
    assert {name: properties.headers.pop(name) for name in headers} == headers
    assert all(name.startswith("x-") for name in properties.headers)
    properties.headers, given.headers, given.expiration = None, None, None
    assert properties == given
    for name in ("mortal", "found"):
        channel.queue_delete(name)


@pytest.mark.parametrize("is_durable", [False, True])
def test_the_default_exchange_sends_dead_letters_on_by_their_own_key(
    channel: BlockingChannel, is_durable: bool
) -> None:
    arguments = {"x-dead-letter-exchange": ""}
    channel.queue_declare("sorted", durable=is_durable, arguments=arguments)
    channel.exchange_declare("any", "fanout", auto_delete=True)
    channel.queue_bind("sorted", "any")
    for name in ("one", "other"):
        channel.queue_declare(name, durable=is_durable)
        channel.basic_publish("any", name, name.encode())
    for method, _, _ in taken(channel, "sorted", 2):
        channel.basic_reject(method.delivery_tag, requeue=False)
    channel.cancel()
    for name in ("one", "other"):
        method, properties, body = taken(channel, name, 1)[0]
        assert (method.exchange, method.routing_key, body) == ("", name, name.encode())
        assert (properties.headers or {})["x-death"][0]["exchange"] == "any"
        channel.cancel()
    for name in ("sorted", "one", "other"):
        channel.queue_delete(name)


@pytest.mark.parametrize("key", [None, "other"])
def test_copies_are_among_the_keys_of_a_death(channel: BlockingChannel, key: str | None) -> None:
    channel.exchange_declare("fatal", "fanout", auto_delete=True)
    channel.queue_declare("dead", exclusive=True)
    channel.queue_bind("dead", "fatal")
    arguments = {"x-dead-letter-exchange": "fatal"} | (
        {"x-dead-letter-routing-key": key} if key else {}
    )
    channel.queue_declare("copied", exclusive=True, arguments=arguments)
    headers = {"CC": ["cc"], "BCC": ["bcc"]}
    channel.basic_publish("", "copied", b"x", pika.BasicProperties(headers=headers))
    channel.basic_reject(channel.basic_get("copied")[0].delivery_tag, requeue=False)
    method, properties, _ = channel.basic_get("dead", auto_ack=True)
    assert properties.headers["x-death"][0]["routing-keys"] == ["copied", "cc"]
    assert properties.headers.get("CC") == (None if key else ["cc"])
    assert method.routing_key == (key or "copied")

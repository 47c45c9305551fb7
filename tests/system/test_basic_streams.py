"""Streams by AMQP 0-9-1: declared, published to, read from anywhere in them, deleted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

import cogwork
from cogwork.config.password_hash import hash_password

from .basic_clients import basic_channel, basic_connection, taken
from .served import served, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

    from .served import Served

STREAM = {"x-queue-type": "stream"}
USERS = f"""
[[user]]
name = "root"
password_hash = "{hash_password("root-secret")}"
permissions = [{{ address = "#", rights = ["manage", "send", "receive"] }}]

[[user]]
name = "some"
password_hash = "{hash_password("some-secret")}"
permissions = [
    {{ address = "queue/#", rights = ["manage", "send", "receive"] }},
    {{ address = "stream/mine", rights = ["receive"] }},
]
"""
PERSISTENT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("streams")
    with served(folder, head=f'data_dir = "{folder / "data"}"\n') as running:
        yield running


def filled(channel: BlockingChannel, name: str, count: int) -> None:
    """Declare a stream, and publish some numbers to it."""
    channel.queue_declare(name, durable=True, arguments=STREAM)
    channel.confirm_delivery()
    for number in range(count):
        channel.basic_publish("", name, b"%d" % number, PERSISTENT, mandatory=True)


def read(
    connection: BlockingConnection, name: str, offset: object, count: int, prefetch: int = 10
) -> list[tuple[int, int]]:
    """Read so many records, or fewer where no more come: their offsets and numbers."""
    channel = connection.channel()
    channel.basic_qos(prefetch_count=prefetch)
    found: list[tuple[int, int]] = []
    arguments = {"x-stream-offset": offset}
    for method, properties, body in channel.consume(
        name, arguments=arguments, inactivity_timeout=2
    ):
        if method is None:
            break
        found.append((properties.headers["x-stream-offset"], int(body)))
        channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            break
    channel.close()
    return found


def test_a_stream_is_read_from_where_a_consumer_says_again_and_again(container: Served) -> None:
    with basic_connection(container) as connection:
        filled(connection.channel(), "places", 10)
        every = [(number, number) for number in range(10)]
        assert read(connection, "places", "first", 10, prefetch=3) == every
        assert read(connection, "places", "first", 10) == every
        assert read(connection, "places", "last", 10) == every[-1:]
        assert read(connection, "places", 4, 6) == every[4:]
        assert read(connection, "places", "1h", 10) == every
        assert read(connection, "places", datetime(2001, 1, 1, tzinfo=UTC), 10) == every
        assert read(connection, "places", datetime(2100, 1, 1, tzinfo=UTC), 1) == []
        looked = connection.channel().queue_declare("places", passive=True).method
        assert (looked.message_count, looked.consumer_count) == (10, 0)


def test_a_consumer_gets_what_comes_after_it_was_told_that_it_consumes(container: Served) -> None:
    with basic_connection(container) as connection:
        publisher, channel = connection.channel(), connection.channel()
        filled(publisher, "live", 3)
        found: list[bytes] = []
        channel.basic_qos(prefetch_count=100)
        channel.basic_consume("live", lambda *given: found.append(given[-1]))
        for number in range(3, 50):
            publisher.basic_publish("", "live", b"%d" % number)
        within(10, lambda: _turned(connection, found, 47), "all has come")
        assert found == [b"%d" % number for number in range(3, 50)]
        looked = publisher.queue_declare("live", passive=True).method
        assert (looked.message_count, looked.consumer_count) == (50, 1)


def _turned(connection: BlockingConnection, found: list[bytes], count: int) -> bool:
    connection.process_data_events(0.05)
    return len(found) >= count


def test_no_more_than_the_prefetch_is_unacknowledged_and_a_nack_gives_credit_too(
    container: Served,
) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        filled(connection.channel(), "credit", 10)
        found: list[tuple[int, bytes, bool]] = []
        channel.basic_qos(prefetch_count=3)
        channel.basic_consume(
            "credit",
            lambda _, method, __, body: found.append(
                (method.delivery_tag, body, method.redelivered)
            ),
            arguments={"x-stream-offset": "first"},
        )
        within(10, lambda: _turned(connection, [body for _, body, _ in found], 3), "three")
        connection.process_data_events(0.3)
        assert [body for _, body, _ in found] == [b"0", b"1", b"2"]
        channel.basic_nack(found[0][0], requeue=True)
        channel.basic_reject(found[1][0], requeue=False)
        channel.basic_ack(found[2][0])
        within(10, lambda: _turned(connection, [body for _, body, _ in found], 6), "three more")
        assert [body for _, body, _ in found] == [b"%d" % number for number in range(6)]
        assert not any(is_redelivered for _, _, is_redelivered in found)


def test_a_lost_consumer_changes_nothing(container: Served) -> None:
    with basic_connection(container) as connection:
        filled(connection.channel(), "lost", 5)
        with basic_connection(container) as other:
            channel = other.channel()
            channel.basic_qos(prefetch_count=5)
            assert len(taken(channel, "lost", 5, arguments={"x-stream-offset": "first"})) == 5
        assert connection.channel().queue_declare("lost", passive=True).method.message_count == 5
        assert read(connection, "lost", 3, 2) == [(3, 3), (4, 4)]


def test_exchanges_lead_to_a_stream_until_it_is_unbound(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        filled(channel, "bound", 0)
        channel.queue_declare("beside", durable=True)
        channel.exchange_declare("both", "topic")
        for name in ("bound", "beside"):
            channel.queue_bind(name, "both", "a.#")
        channel.basic_publish("both", "a.b", b"0", mandatory=True)
        channel.queue_unbind("bound", "both", "a.#")
        channel.basic_publish("both", "a.b", b"1", mandatory=True)
        assert read(connection, "bound", "first", 2) == [(0, 0)]
        assert channel.queue_declare("beside", passive=True).method.message_count == 2


@pytest.mark.parametrize(
    ("refused", "code", "text"),
    [
        (lambda one: one.basic_get("r"), 540, "basic.get not supported by stream queues queue 'r'"),
        (lambda one: one.queue_purge("r"), 540, "queue.purge not supported"),
        (lambda one: one.basic_consume("r", print), 406, "prefetch count is not set for stream"),
        (
            lambda one: (one.basic_qos(0, 5), one.basic_consume("r", print, auto_ack=True)),
            540,
            "automatic acknowledgement not supported by stream queue 'r'",
        ),
        (
            lambda one: (
                one.basic_qos(0, 5),
                one.basic_qos(0, 5, global_qos=True),
                one.basic_consume("r", print),
            ),
            540,
            "does not support global qos",
        ),
        (
            lambda one: (
                one.basic_qos(0, 5),
                one.basic_consume("r", print, arguments={"x-stream-offset": "soon"}),
            ),
            406,
            "invalid arg 'x-stream-offset'",
        ),
        (lambda one: one.queue_declare("r", durable=True), 406, "inequivalent arg 'x-queue-type'"),
        (
            lambda one: one.queue_declare("new", arguments=STREAM),
            406,
            "invalid property 'non-durable' for queue 'new'",
        ),
        (
            lambda one: one.queue_declare("new", durable=True, exclusive=True, arguments=STREAM),
            406,
            "invalid property 'exclusive-owner'",
        ),
        (
            lambda one: one.queue_declare("new", durable=True, auto_delete=True, arguments=STREAM),
            406,
            "invalid property 'auto-delete'",
        ),
        (
            lambda one: one.queue_declare(
                "r", durable=True, arguments={**STREAM, "x-max-age": "1D"}
            ),
            406,
            "inequivalent arg 'x-max-age'",
        ),
        (
            lambda one: (
                one.queue_declare("plain", durable=True),
                one.queue_declare("plain", durable=True, arguments=STREAM),
            ),
            406,
            "inequivalent arg 'x-queue-type' for queue 'plain'",
        ),
        (lambda one: one.queue_declare("a:b", durable=True, arguments=STREAM), 406, "no colon"),
        (lambda one: one.queue_declare("amq.s", durable=True, arguments=STREAM), 403, "reserved"),
    ],
)
def test_what_a_stream_cannot_do_is_refused(
    container: Served, refused: Callable[[BlockingChannel], object], code: int, text: str
) -> None:
    with basic_connection(container) as connection:
        filled(connection.channel(), "r", 0)
        closed = (ChannelClosedByBroker, ConnectionClosedByBroker)
        with pytest.raises(closed) as found:
            refused(connection.channel())
        assert found.value.reply_code == code
        assert text in found.value.reply_text


def test_a_stream_that_is_deleted_ends_its_consumers_and_its_bindings(container: Served) -> None:
    with basic_connection(container) as connection:
        channel, other = connection.channel(), connection.channel()
        filled(channel, "gone", 4)
        channel.queue_bind("gone", "amq.fanout")
        cancelled: list[Any] = []
        other.add_on_cancel_callback(cancelled.append)
        other.basic_qos(prefetch_count=1)
        other.basic_consume("gone", lambda *_: None)
        with pytest.raises(ChannelClosedByBroker, match=r"406.*in use"):
            connection.channel().queue_delete("gone", if_unused=True)
        assert channel.queue_delete("gone").method.message_count == 4
        within(10, lambda: _turned(connection, cancelled, 1), "the consumer is cancelled")
        channel.queue_delete("gone")
        filled(channel, "gone", 0)
        channel.basic_publish("amq.fanout", "", b"1")
        assert channel.queue_declare("gone", passive=True).method.message_count == 0


def test_bindings_go_with_a_stream_that_a_command_deletes(container: Served) -> None:
    with basic_channel(container) as channel:
        filled(channel, "ended", 1)
        channel.queue_bind("ended", "amq.direct", "ended")
        container.run("stream", "delete", container.url, "ended")
        filled(channel, "ended", 0)
        channel.basic_publish("amq.direct", "ended", b"1")
        assert channel.queue_declare("ended", passive=True).method.message_count == 0


def test_both_protocols_see_one_stream(container: Served) -> None:
    with basic_connection(container) as connection:
        filled(connection.channel(), "shared", 2)

        async def cross() -> list[object]:
            async with cogwork.connect(container.url) as client:
                stream = client.stream("shared")
                await stream.append([b"2"])
                found: list[object] = []
                async for message in stream.read("first"):
                    found.append(message.body)
                    if len(found) == 3:
                        break
                return found

        assert asyncio.run(cross()) == [b"0", b"1", b"2"]
        assert read(connection, "shared", "first", 3) == [(0, 0), (1, 1), (2, 2)]


def test_a_stream_of_1_0_is_a_queue_of_0_9_1(container: Served) -> None:
    container.run("stream", "create", container.url, "made", "--retention", "7d")
    container.run("send", container.url, "stream/made", "0")
    with basic_connection(container) as connection:
        arguments = {**STREAM, "x-max-age": "7D"}
        found = connection.channel().queue_declare("made", durable=True, arguments=arguments)
        assert found.method.message_count == 1
        assert read(connection, "made", "first", 1) == [(0, 0)]


def test_what_is_there_after_a_restart(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path / "data"}"\n'
    with served(tmp_path, head=head) as container, basic_channel(container) as channel:
        filled(channel, "kept", 100)
        channel.exchange_declare("kept", "topic", durable=True)
        channel.queue_bind("kept", "kept", "#")
    with served(tmp_path, head=head) as container, basic_connection(container) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("kept", "any", b"100", mandatory=True)
        found = channel.queue_declare("kept", durable=True, arguments=STREAM).method
        assert found.message_count == 101
        assert read(connection, "kept", 98, 3) == [(98, 98), (99, 99), (100, 100)]


def test_without_a_data_directory_a_stream_is_in_memory(tmp_path: Path) -> None:
    with served(tmp_path) as container, basic_connection(container) as connection:
        filled(connection.channel(), "brief", 3)
        assert read(connection, "brief", "first", 3) == [(0, 0), (1, 1), (2, 2)]
        assert "engine orb" in container.run("stream", "show", container.url, "brief")


def test_old_records_go_by_size(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        arguments = {**STREAM, "x-max-length-bytes": 100_000}
        channel.queue_declare("short", durable=True, arguments=arguments)
        shown = container.run("stream", "show", container.url, "short", "--json")
        assert '"retention_bytes": 100000' in shown


def test_permissions_are_those_on_the_address_of_the_stream(tmp_path: Path) -> None:
    """Also once a queue has gone whose name a stream has then."""
    with (
        served(tmp_path, USERS) as container,
        basic_connection(container, credentials=_login("root")) as root,
        basic_connection(container, credentials=_login("some")) as some,
    ):
        for name in ("mine", "theirs"):
            filled(root.channel(), name, 2)
        assert read(some, "mine", "first", 2) == [(0, 0), (1, 1)]
        for refused in (
            lambda one: (one.basic_qos(0, 5), one.basic_consume("theirs", print)),
            lambda one: one.queue_declare("new", durable=True, arguments=STREAM),
            lambda one: one.queue_delete("mine"),
            lambda one: (one.confirm_delivery(), one.basic_publish("", "mine", b"2")),
        ):
            with pytest.raises(ChannelClosedByBroker, match=r"403.*ACCESS_REFUSED"):
                refused(some.channel())
        channel = some.channel()
        channel.confirm_delivery()
        channel.queue_declare("first", durable=True)
        channel.basic_publish("", "first", b"0", mandatory=True)
        channel.queue_delete("first")
        filled(root.channel(), "first", 0)
        with pytest.raises(ChannelClosedByBroker, match=r"403.*ACCESS_REFUSED"):
            channel.basic_publish("", "first", b"1")


def _login(name: str) -> pika.PlainCredentials:
    return pika.PlainCredentials(name, f"{name}-secret")

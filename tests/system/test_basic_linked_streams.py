"""Streams by AMQP 0-9-1 at three containers: declared, read and deleted at any of them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from .basic_clients import basic_connection
from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, within
from .trios import EDGES, IDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

    from .meshes import Member

STREAM = {"x-queue-type": "stream"}
PERSISTENT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as found:
        linked(found.values())
        # Before that bindings are known where they were declared.
        within(READY_TIMEOUT_S, found["a"].has_levels, "the level has risen")
        yield found


def numbers(channel: BlockingChannel, name: str, offset: object, count: int) -> list[int]:
    """Read so many records."""
    found: list[int] = []
    arguments = {"x-stream-offset": offset}
    channel.basic_qos(prefetch_count=7)
    for method, _, body in channel.consume(name, arguments=arguments, inactivity_timeout=5):
        if method is None:
            break
        found.append(int(body))
        channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            break
    channel.cancel()
    return found


def confirming(connection: BlockingConnection) -> BlockingChannel:
    channel: BlockingChannel = connection.channel()
    channel.confirm_delivery()
    return channel


def test_every_container_declares_publishes_reads_and_deletes_alike(
    members: dict[str, Member],
) -> None:
    with ExitStack() as stack:
        a, b, c = (stack.enter_context(basic_connection(members[name].served)) for name in IDS)
        channels = [confirming(each) for each in (a, b, c)]
        channels[0].queue_declare("log", durable=True, arguments=STREAM)
        for each in (b, c):  # at once: all know it
            each.channel().queue_declare("log", passive=True)
            each.channel().queue_declare("log", durable=True, arguments=STREAM)
            with pytest.raises(ChannelClosedByBroker, match=r"406.*inequivalent arg 'x-max-age'"):
                each.channel().queue_declare(
                    "log", durable=True, arguments={**STREAM, "x-max-age": "1h"}
                )
        channels[1].queue_bind("log", "amq.topic", "n.#")
        for number in range(30):
            exchange, key = ("", "log") if number % 2 else ("amq.topic", "n.x")
            channels[number % 3].basic_publish(exchange, key, b"%d" % number, PERSISTENT, True)
        for each in (a, b, c):
            assert numbers(each.channel(), "log", "first", 30) == list(range(30))
            assert numbers(each.channel(), "log", 28, 2) == [28, 29]
        # The bindings lead to no queue that nobody has declared.
        assert "queue/log" not in members["c"].served.run("queue", "list", members["c"].url)
        assert channels[2].queue_delete("log").method.message_count == 30
        for each in (a, b, c):
            with pytest.raises(ChannelClosedByBroker, match=r"404.*no queue 'log'"):
                each.channel().queue_declare("log", passive=True)
        channels[0].queue_declare("log", durable=True, arguments=STREAM)
        channels[1].basic_publish("amq.topic", "n.x", b"1", PERSISTENT)
        assert channels[2].queue_declare("log", passive=True).method.message_count == 0


def test_a_stream_is_read_on_while_containers_are_killed(members: dict[str, Member]) -> None:
    with basic_connection(members["a"].served) as a:
        channel = confirming(a)
        channel.queue_declare("log", durable=True, arguments=STREAM)
        channel.queue_bind("log", "amq.topic", "n.#")
        for number in range(20):
            channel.basic_publish("amq.topic", "n", b"%d" % number, PERSISTENT, mandatory=True)
    members["a"].kill()
    with basic_connection(members["b"].served) as b:
        assert numbers(b.channel(), "log", "first", 20) == list(range(20))
        channel = confirming(b)
        for number in range(20, 30):
            channel.basic_publish("amq.topic", "n", b"%d" % number, PERSISTENT, mandatory=True)
    members["a"].start()
    within(READY_TIMEOUT_S, members["a"].listens, "a listens")
    with basic_connection(members["a"].served) as a:
        channel = a.channel()
        channel.queue_declare("log", durable=True, arguments=STREAM)
        assert numbers(channel, "log", 15, 15) == list(range(15, 30))
        channel = confirming(a)
        channel.basic_publish("amq.topic", "n", b"30", PERSISTENT, mandatory=True)
        assert numbers(a.channel(), "log", 30, 1) == [30]
        assert "queue/log" not in members["a"].served.run("queue", "list", members["a"].url)

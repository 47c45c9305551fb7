"""A method of AMQP 0-9-1 that has to wait: its channel waits behind it, and nobody else."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

import pytest
from pika import spec
from pika.exceptions import AMQPError, ChannelClosedByBroker

from .basic_clients import basic_channel, basic_connection
from .served import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .served import Served

LIMITS = "[limits]\ndeclaration_rate_per_source = 1\n"
"""After a burst of two, each declaration of a new queue waits for a second more."""

PUBLISHES = 1_500
"""More than a channel keeps waiting while its client is read."""


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, LIMITS) as running:
        yield running


def use_the_burst_up(channel: BlockingChannel) -> None:
    for name in ("first", "second"):
        channel.queue_declare(name)


def declare_unanswered(channel: BlockingChannel, queue: str) -> None:
    """Send a declaration and wait for nothing."""
    channel._impl._send_method(spec.Queue.Declare(queue=queue))


def test_other_channels_go_on_while_one_waits(container: Served) -> None:
    with basic_connection(container) as connection:
        waiting, free = connection.channel(), connection.channel()
        use_the_burst_up(waiting)
        declare_unanswered(waiting, "third")
        connection.process_data_events(0)
        began_s = time.monotonic()
        for _ in range(10):
            free.queue_declare("first", passive=True)
        took_s = time.monotonic() - began_s
        # What comes behind the declaration finds the queue: it is answered after it.
        waiting.queue_declare("third", passive=True)
        assert took_s < time.monotonic() - began_s
        assert took_s < 0.5


def test_what_is_published_behind_it_keeps_its_order(container: Served) -> None:
    with basic_channel(container) as channel:
        use_the_burst_up(channel)
        declare_unanswered(channel, "third")
        for number in range(PUBLISHES):
            channel.basic_publish("", "third", b"%d" % number)
        answer = channel.queue_declare("third", passive=True)
        assert answer.method.message_count == PUBLISHES
        bodies = [channel.basic_get("third", auto_ack=True)[2] for _ in range(PUBLISHES)]
        assert bodies == [b"%d" % number for number in range(PUBLISHES)]


def test_an_error_of_what_waited_closes_its_channel_alone(container: Served) -> None:
    with basic_connection(container) as connection:
        waiting, free = connection.channel(), connection.channel()
        use_the_burst_up(free)
        waiting._impl._send_method(spec.Queue.Declare(queue="same", nowait=True))
        # It is made meanwhile: both wait, and the second one differs.
        waiting._impl._send_method(spec.Queue.Declare(queue="same", durable=True))
        with pytest.raises(ChannelClosedByBroker, match="inequivalent arg 'durable'") as caught:
            waiting.basic_qos()
        assert caught.value.reply_code == 406
        free.queue_declare("same", passive=True)


def test_a_channel_that_is_closed_ends_when_what_waited_is_done(container: Served) -> None:
    with basic_connection(container) as connection:
        waiting, free = connection.channel(), connection.channel()
        use_the_burst_up(free)
        waiting._impl._send_method(spec.Queue.Declare(queue="third", nowait=True))
        waiting.basic_publish("", "third", b"x")
        waiting.close()
        assert free.basic_get("third", auto_ack=True)[2] == b"x"
        waiting = connection.channel()
        for durable in (False, True):  # what fails behind a close changes nothing for the client
            declare = spec.Queue.Declare(queue="fourth", durable=durable, nowait=True)
            waiting._impl._send_method(declare)
        waiting.close()
        free.queue_declare("fourth", passive=True)


def test_a_connection_that_is_closed_ends_when_what_waited_is_done(container: Served) -> None:
    with basic_channel(container) as channel:
        use_the_burst_up(channel)
        channel._impl._send_method(spec.Queue.Declare(queue="third", nowait=True))
        channel.basic_publish("", "third", b"x")
        channel.connection._impl._send_method(0, spec.Connection.Close(200, "", 0, 0))
        with pytest.raises(AMQPError):
            channel.queue_declare("third", passive=True)
    with basic_channel(container) as channel:
        assert channel.basic_get("third", auto_ack=True)[2] == b"x"


def test_a_connection_that_is_lost_takes_what_waits_along(container: Served) -> None:
    with contextlib.suppress(AMQPError), basic_connection(container) as connection:
        channel = connection.channel()
        use_the_burst_up(channel)
        declare_unanswered(channel, "never")
        connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
        connection.process_data_events(1)
    with basic_channel(container) as channel:
        time.sleep(1.5)  # by then it would have been made
        with pytest.raises(ChannelClosedByBroker) as caught:
            channel.queue_declare("never", passive=True)
        assert caught.value.reply_code == 404

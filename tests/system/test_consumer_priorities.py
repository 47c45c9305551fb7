"""Priorities of consumers: the highest get messages while they may have more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pika.exceptions import ChannelClosedByBroker

from .basic_clients import basic_channel, basic_connection
from .served import served, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

    from .served import Served


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("priorities")) as running:
        yield running


@pytest.fixture
def connection(container: Served) -> Iterator[BlockingConnection]:
    with basic_connection(container) as made:
        yield made


def _consumer(
    connection: BlockingConnection, prefetch: int, arguments: dict[str, Any]
) -> tuple[BlockingChannel, list[bytes]]:
    """Consume from `ranked` on a channel of its own; return that, and what came."""
    found: list[bytes] = []
    channel = connection.channel()
    channel.basic_qos(prefetch_count=prefetch)
    channel.basic_consume("ranked", lambda *got: found.append(got[3]), arguments=arguments)
    return channel, found


def _publish(connection: BlockingConnection, *bodies: int) -> None:
    channel = connection.channel()
    for body in bodies:
        channel.basic_publish("", "ranked", b"%d" % body)
    channel.close()


def _has(connection: BlockingConnection, found: list[bytes], *bodies: int) -> None:
    """Wait until a consumer has what it is to have."""

    def is_there() -> bool:
        connection.process_data_events(0.01)
        return found == [b"%d" % body for body in bodies]

    within(10, is_there, f"a consumer has {found}, not {bodies}")


@pytest.fixture
def _queue(connection: BlockingConnection) -> Iterator[None]:
    connection.channel().queue_declare("ranked")
    yield
    connection.channel().queue_delete("ranked")


@pytest.mark.usefixtures("_queue")
def test_the_highest_get_messages_while_they_may_have_more(
    connection: BlockingConnection,
) -> None:
    _, low = _consumer(connection, 2, {"x-priority": -1})
    _, middle = _consumer(connection, 2, {})
    high_channel, high = _consumer(connection, 2, {"x-priority": 10})
    _publish(connection, *range(1, 8))
    _has(connection, high, 1, 2)
    _has(connection, middle, 3, 4)
    _has(connection, low, 5, 6)
    high_channel.basic_ack(0, multiple=True)
    _has(connection, high, 1, 2, 7)
    _publish(connection, 8, 9)
    _has(connection, high, 1, 2, 7, 8)
    assert (middle, low) == ([b"3", b"4"], [b"5", b"6"])


@pytest.mark.usefixtures("_queue")
def test_those_of_one_priority_take_turns(connection: BlockingConnection) -> None:
    _, low = _consumer(connection, 0, {})
    _, first = _consumer(connection, 2, {"x-priority": 5})
    _, second = _consumer(connection, 2, {"x-priority": 5})
    _publish(connection, *range(1, 6))
    _has(connection, first, 1, 3)
    _has(connection, second, 2, 4)
    _has(connection, low, 5)


@pytest.mark.usefixtures("_queue")
def test_what_goes_back_goes_to_the_highest(connection: BlockingConnection) -> None:
    _, low = _consumer(connection, 0, {})
    channel, high = _consumer(connection, 1, {"x-priority": 1})
    _publish(connection, 1, 2)
    _has(connection, high, 1)
    _has(connection, low, 2)
    channel.basic_nack(1, requeue=True)
    _has(connection, high, 1, 1)
    assert low == [b"2"]


@pytest.mark.usefixtures("_queue")
def test_the_next_ones_get_all_if_the_highest_goes(connection: BlockingConnection) -> None:
    channel, high = _consumer(connection, 0, {"x-priority": 3})
    _, low = _consumer(connection, 0, {"x-priority": 2})
    _publish(connection, 1)
    _has(connection, high, 1)
    channel.close()
    _has(connection, low, 1)
    _publish(connection, 2)
    _has(connection, low, 1, 2)


@pytest.mark.usefixtures("_queue")
def test_a_priority_is_an_integer(container: Served) -> None:
    expected = "(?s)406.*invalid arg .*x-priority.* for queue .*ranked.*got longstr"
    with (
        basic_channel(container) as channel,
        pytest.raises(ChannelClosedByBroker, match=expected),
    ):
        channel.basic_consume("ranked", lambda *_: None, arguments={"x-priority": "high"})

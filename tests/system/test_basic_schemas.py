"""Messages by AMQP 0-9-1 are held to the schemas of where they go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, NackError

from cogwork import sync

from .basic_clients import basic_connection, taken
from .schemas import CONFIGURATION, ORDER, known
from .served import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingConnection

LARGE = "x" * 10_000
"""More than is decided over at once."""


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("edge"), CONFIGURATION) as running:
        with sync.connect(running.url) as client:
            client.schemas.register("*/orders.#", ORDER)
        known(running, 1)
        yield running


@pytest.fixture
def connection(edge: Served) -> Iterator[BlockingConnection]:
    with basic_connection(edge) as made:
        yield made


@pytest.mark.parametrize("more", [{}, {"note": LARGE}])
@pytest.mark.parametrize("exchange", ["", "orders.all"])
def test_what_does_not_fit_is_refused(
    connection: BlockingConnection, exchange: str, more: dict[str, str]
) -> None:
    setup = connection.channel()
    setup.queue_declare("orders.eu")
    setup.exchange_declare("orders.all", "fanout")
    setup.queue_bind("orders.eu", "orders.all")
    good, bad = (json.dumps({"id": number, **more}).encode() for number in (7, 0))
    properties = pika.BasicProperties(content_type="application/json")
    unsure = connection.channel()
    unsure.basic_publish(exchange, "orders.eu", bad, properties)
    with pytest.raises(ChannelClosedByBroker, match=r"406.*0 is less than the minimum of 1"):
        unsure.queue_declare("orders.eu", passive=True)
    sure = connection.channel()
    sure.confirm_delivery()
    for _ in range(3):
        sure.basic_publish(exchange, "orders.eu", good, properties)
        with pytest.raises(NackError):
            sure.basic_publish(exchange, "orders.eu", bad, properties)
    assert [body for _, _, body in taken(setup, "orders.eu", 3, auto_ack=True)] == [good] * 3
    setup.cancel()
    assert setup.queue_delete("orders.eu").method.message_count == 0


def test_what_is_held_to_nothing_is_taken(connection: BlockingConnection) -> None:
    channel = connection.channel()
    channel.confirm_delivery()
    for name in ("orders.free", "other"):
        channel.queue_declare(name)
        channel.basic_publish("", name, b"no order", mandatory=True)

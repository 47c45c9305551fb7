"""Messages that are delivered at once or returned."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import UnroutableError

from .basic_clients import basic_channel, taken
from .meshes import linked, meshed
from .served import within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

NO_ROUTE, NO_CONSUMERS = 312, 313


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    folder: Path = tmp_path_factory.mktemp("immediate")
    with meshed(folder, "ab", ["ab"]) as found:
        linked(found.values())
        yield found


class Publisher:
    """Publishes immediate messages, which channels of pika have no argument for."""

    def __init__(self, channel: BlockingChannel, nobody: str = "nobody") -> None:
        """Use a channel; a message to `nobody` takes the same way as all others, and comes back."""
        self._channel = channel
        self._end = pika.spec.Basic.Publish(routing_key=nobody, mandatory=True)
        self._returned: list[tuple[int, bytes]] = []
        channel.add_on_return_callback(
            lambda _c, method, _p, body: self._returned.append((method.reply_code, body))
        )

    def publish(self, exchange: str, key: str, body: bytes) -> list[tuple[int, bytes]]:
        """Publish a message; return what has come back once one behind it has."""
        self._returned.clear()
        method = pika.spec.Basic.Publish(exchange=exchange, routing_key=key, immediate=True)
        self._send(method, body)
        self._send(self._end, b"end")
        within(10, self._has_ended, "the end is returned")
        return [each for each in self._returned if each != (NO_ROUTE, b"end")]

    def _send(self, method: pika.spec.Basic.Publish, body: bytes) -> None:
        self._channel._impl._send_method(method, (pika.BasicProperties(), body))

    def _has_ended(self) -> bool:
        self._channel.connection.process_data_events(0.05)
        return (NO_ROUTE, b"end") in self._returned


def test_a_message_is_delivered_at_once_or_returned(members: dict[str, Member]) -> None:
    with basic_channel(members["a"].served) as here, basic_channel(members["a"].served) as taker:
        publisher = Publisher(here)
        taker.queue_declare("now", exclusive=True)
        taker.queue_bind("now", "amq.direct", "k")
        assert publisher.publish("amq.direct", "none", b"0") == [(NO_CONSUMERS, b"0")]
        assert publisher.publish("amq.direct", "k", b"1") == [(NO_CONSUMERS, b"1")]
        found: list[bytes] = []
        taker.basic_qos(prefetch_count=1)
        taker.basic_consume("now", lambda _c, _m, _p, body: found.append(body))
        taker.connection.process_data_events(0.1)
        assert publisher.publish("amq.direct", "k", b"2") == []
        within(10, lambda: has_come(taker, found), "the consumer has it")
        assert found == [b"2"]
        # It has not acknowledged that, and has no room.
        assert publisher.publish("amq.direct", "k", b"3") == [(NO_CONSUMERS, b"3")]
        taker.basic_ack(1)
        taker.connection.process_data_events(0.1)
        assert publisher.publish("amq.direct", "k", b"4") == []


def has_come(channel: BlockingChannel, found: list[bytes]) -> bool:
    channel.connection.process_data_events(0.1)
    return bool(found)


def test_a_private_queue_elsewhere_takes_it_if_it_has_a_consumer(
    members: dict[str, Member],
) -> None:
    with basic_channel(members["a"].served) as here, basic_channel(members["b"].served) as there:
        queue = there.queue_declare("", exclusive=True).method.queue
        there.queue_bind(queue, "amq.topic", "i.#")
        here.confirm_delivery()
        within(20, lambda: is_known(here), "the binding is known")
        assert [body for _, _, body in taken(there, queue, 1, auto_ack=True)] == [b"known"]
        there.cancel()
        with basic_channel(members["a"].served) as channel:
            publisher = Publisher(channel, nobody="amq.gen-nobody@b")
            assert publisher.publish("amq.topic", "i.1", b"1") == [(NO_CONSUMERS, b"1")]
            assert publisher.publish("", queue, b"2") == [(NO_CONSUMERS, b"2")]
            found: list[bytes] = []
            there.basic_consume(queue, lambda _c, _m, _p, body: found.append(body), auto_ack=True)
            there.connection.process_data_events(0.1)
            assert publisher.publish("amq.topic", "i.1", b"3") == []
            assert publisher.publish("", queue, b"4") == []
            within(10, lambda: has_come(there, found) and len(found) == 2, "both have come")
            assert found == [b"3", b"4"]


def is_known(channel: BlockingChannel) -> bool:
    with contextlib.suppress(UnroutableError):
        channel.basic_publish("amq.topic", "i.1", b"known", mandatory=True)
        return True
    return False


def test_a_connection_shows_its_cluster_id(members: dict[str, Member]) -> None:
    with basic_channel(members["a"].served) as channel:
        queue = channel.queue_declare("", exclusive=True).method.queue
        tag = channel.basic_consume(queue, lambda *_: None)
        found = json.loads(
            members["a"].served.run("connection", "list", members["a"].url, "--json")
        )
        (row,) = [each for each in found if each["protocol"] == "AMQP 0-9-1"]
        spid, number = row["cluster_id"].split("/")
        assert spid.endswith("Z-a")
        assert number == row["name"]
        assert row["channels"] == [f"{spid}/{number}/{channel.channel_number}"]
        assert row["consumers"] == [f"{spid}/{number}/{tag}"]

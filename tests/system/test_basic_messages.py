"""Messages by AMQP 0-9-1: published, confirmed, returned, taken, acknowledged, in transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
import pytest
from amqp.basic_message import Message
from amqp.connection import Connection
from pika.exceptions import (
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NackError,
    UnroutableError,
)

from .basic_clients import basic_channel, basic_connection, port_of, taken
from .served import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel

    from .served import Served


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("basic")) as running:
        yield running


@pytest.fixture
def channel(container: Served) -> Iterator[BlockingChannel]:
    """A channel with confirms, and a queue `q` that is its own."""
    with basic_channel(container) as opened:
        opened.confirm_delivery()
        opened.queue_declare("q", exclusive=True)
        yield opened


PROPERTIES = pika.BasicProperties(
    content_type="text/plain",
    content_encoding="utf-8",
    headers={"a": 1, "b": "two", "c": [True, None, {"d": b"\x00\xff"}]},
    delivery_mode=2,
    priority=3,
    correlation_id="c-1",
    reply_to="replies",
    message_id="m-1",
    timestamp=1_700_000_000,
    type="kind",
    app_id="tests",
)


@pytest.mark.parametrize("size_bytes", [0, 1, 1000, 131_072, 3_000_000])
def test_a_message_comes_out_as_it_went_in(channel: BlockingChannel, size_bytes: int) -> None:
    body = bytes(range(256)) * (size_bytes // 256 + 1)
    body = body[:size_bytes]
    channel.basic_publish("", "q", body, PROPERTIES)
    ((method, properties, found),) = taken(channel, "q", 1)
    assert found == body
    assert properties == PROPERTIES
    assert (method.exchange, method.routing_key, method.redelivered) == ("", "q", False)
    assert method.delivery_tag == 1
    channel.basic_ack(1)


def test_messages_are_taken_in_order_by_get(channel: BlockingChannel) -> None:
    for number in range(3):
        channel.basic_publish("", "q", b"%d" % number)
    for number in range(3):
        method, _, body = channel.basic_get("q")
        assert (body, method.message_count) == (b"%d" % number, 2 - number)
        channel.basic_ack(method.delivery_tag)
    assert channel.basic_get("q") == (None, None, None)


def test_what_is_requeued_comes_again_marked_at_its_place(channel: BlockingChannel) -> None:
    for number in range(3):
        channel.basic_publish("", "q", b"%d" % number)
    first, _, _ = channel.basic_get("q")
    second, _, _ = channel.basic_get("q")
    channel.basic_nack(second.delivery_tag, multiple=True, requeue=True)
    found = [channel.basic_get("q", auto_ack=True) for _ in range(3)]
    assert [(body, method.redelivered) for method, _, body in found] == [
        (b"0", True),
        (b"1", True),
        (b"2", False),
    ]
    assert first.delivery_tag == 1


def test_what_is_rejected_is_gone(channel: BlockingChannel) -> None:
    channel.basic_publish("", "q", b"x")
    method, _, _ = channel.basic_get("q")
    channel.basic_reject(method.delivery_tag, requeue=False)
    assert channel.basic_get("q") == (None, None, None)


def test_an_acknowledgement_of_nothing_is_refused(channel: BlockingChannel) -> None:
    channel.basic_ack(7)
    with pytest.raises(ChannelClosedByBroker, match=r"406.*unknown delivery tag 7"):
        channel.queue_declare("q", passive=True)


def test_what_a_channel_has_not_acknowledged_goes_back(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("back", exclusive=True)
        for number in range(5):
            channel.basic_publish("", "back", b"%d" % number)
        other = connection.channel()
        found = taken(other, "back", 5)
        other.basic_ack(found[1][0].delivery_tag, multiple=True)
        other.close()
        left = [channel.basic_get("back", auto_ack=True) for _ in range(3)]
        assert [(body, method.redelivered) for method, _, body in left] == [
            (b"2", True),
            (b"3", True),
            (b"4", True),
        ]


def test_recover_brings_all_back(channel: BlockingChannel) -> None:
    channel.basic_publish("", "q", b"x")
    channel.basic_get("q")
    channel.basic_recover(requeue=True)
    method, _, _ = channel.basic_get("q", auto_ack=True)
    assert method.redelivered


@pytest.mark.parametrize("is_global", [False, True])
def test_a_prefetch_count_bounds_what_is_out(container: Served, is_global: bool) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("bounded", exclusive=True)
        channel.basic_qos(prefetch_count=3, global_qos=is_global)
        for _ in range(10):
            channel.basic_publish("", "bounded", b"x")
        got: list[int] = []
        channel.basic_consume("bounded", lambda _c, method, _p, _b: got.append(method.delivery_tag))
        connection.process_data_events(0.5)
        assert got == [1, 2, 3]
        channel.basic_ack(2, multiple=True)
        connection.process_data_events(0.5)
        assert got == [1, 2, 3, 4, 5]


def test_a_prefetch_size_is_not_implemented(container: Served) -> None:
    with (
        basic_channel(container) as channel,
        pytest.raises(ConnectionClosedByBroker, match=r"540.*prefetch_size"),
    ):
        channel.basic_qos(prefetch_size=10)


def test_a_mandatory_message_that_nobody_takes_is_returned(channel: BlockingChannel) -> None:
    with pytest.raises(UnroutableError) as caught:
        channel.basic_publish("", "nowhere", b"lost", PROPERTIES, mandatory=True)
    (returned,) = caught.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("", "nowhere")
    assert (returned.body, returned.properties) == (b"lost", PROPERTIES)
    channel.basic_publish("", "nowhere", b"lost")  # unless it is mandatory, that is fine


def test_a_full_queue_that_rejects_has_publishers_told(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        channel.queue_declare("full", exclusive=True, arguments=arguments)
        channel.basic_publish("", "full", b"1")
        with pytest.raises(NackError):
            channel.basic_publish("", "full", b"2")
        assert channel.queue_declare("full", passive=True).method.message_count == 1


@pytest.mark.parametrize("bound", ["x-max-length", "x-max-length-bytes"])
def test_a_queue_without_room_for_any_message_refuses_each(container: Served, bound: str) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        arguments = {bound: 0, "x-overflow": "reject-publish"}
        channel.queue_declare("none", exclusive=True, arguments=arguments)
        channel.basic_consume("none", lambda *_: None)
        with pytest.raises(NackError):
            channel.basic_publish("", "none", b"")


def test_a_queue_that_rejects_takes_no_message_larger_than_its_room(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        arguments = {"x-max-length-bytes": 1_000, "x-overflow": "reject-publish"}
        channel.queue_declare("narrow", exclusive=True, arguments=arguments)
        channel.basic_publish("", "narrow", bytes(500))
        with pytest.raises(NackError):
            channel.basic_publish("", "narrow", bytes(600))
        channel.basic_publish("", "narrow", bytes(300))


@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish"])
def test_what_is_not_acknowledged_takes_no_room(container: Served, overflow: str) -> None:
    with basic_channel(container) as channel:
        arguments = {"x-max-length": 2, "x-overflow": overflow}
        channel.queue_declare("roomy", exclusive=True, arguments=arguments)
        for number in range(4):
            channel.basic_publish("", "roomy", b"%d" % number)
            if number < 2:
                assert channel.basic_get("roomy")[2] == b"%d" % number
        assert channel.queue_declare("roomy", passive=True).method.message_count == 2
        channel.basic_nack(0, multiple=True)
        kept = [b"2", b"3"] if overflow == "drop-head" else [b"0", b"1", b"2", b"3"]
        found = [channel.basic_get("roomy", auto_ack=True)[2] for _ in range(5)]
        assert [body for body in found if body is not None] == kept


@pytest.mark.parametrize("length", [1, 2, 3])
def test_what_is_dropped_as_others_come_back_is_counted_no_more(
    container: Served, length: int
) -> None:
    arguments = {"x-max-length": length}
    with basic_channel(container) as channel:
        channel.queue_declare("crowded", exclusive=True, arguments=arguments)
        for _ in range(length):
            channel.basic_publish("", "crowded", b"old")
        taken = [channel.basic_get("crowded")[0] for _ in range(length)]
        for _ in range(length):
            channel.basic_publish("", "crowded", b"new")
        assert taken[-1] is not None
        channel.basic_nack(taken[-1].delivery_tag, multiple=True)
        method, _, body = channel.basic_get("crowded", auto_ack=True)
        assert method is not None
        assert (method.message_count, body) == (length - 1, b"new")


def test_a_full_queue_drops_its_head(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        channel.queue_declare("short", exclusive=True, arguments={"x-max-length": 2})
        for number in range(5):
            channel.basic_publish("", "short", b"%d" % number)
        found = [channel.basic_get("short", auto_ack=True)[2] for _ in range(3)]
        assert found == [b"3", b"4", None]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"exchange": "nix"}, "404.*no exchange 'nix' in vhost '/'"),
        ({"properties": {"expiration": "soon"}}, "406.*invalid expiration 'soon'"),
        ({"properties": {"user_id": "eve"}}, "406.*user_id property set to 'eve'"),
        (
            {"properties": {"headers": {"CC": "one"}}},
            '406.*unacceptable_type_in_header,"CC",longstr',
        ),
    ],
)
def test_what_cannot_be_published_closes_the_channel(
    container: Served, given: dict[str, Any], expected: str
) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        properties = pika.BasicProperties(**given.get("properties", {}))
        channel.basic_publish(given.get("exchange", ""), "k", b"x", properties)
        with pytest.raises(ChannelClosedByBroker, match=expected):
            channel.queue_declare("q", passive=True)
        connection.channel()


def test_a_message_expires(channel: BlockingChannel) -> None:
    channel.basic_publish("", "q", b"x", pika.BasicProperties(expiration="100"))
    channel.basic_publish("", "q", b"y")
    channel.connection.sleep(0.5)
    assert channel.basic_get("q", auto_ack=True)[2] == b"y"


def test_copies_go_to_further_keys_and_blind_ones_are_not_told(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        for name in ("to", "cc", "bcc"):
            channel.queue_declare(name, exclusive=True)
        properties = pika.BasicProperties(headers={"CC": ["cc"], "BCC": ["bcc"]})
        channel.basic_publish("", "to", b"x", properties)
        found = [channel.basic_get(name, auto_ack=True) for name in ("to", "cc", "bcc")]
        assert [body for _, _, body in found] == [b"x"] * 3
        assert [each.headers for _, each, _ in found] == [{"CC": ["cc"]}] * 3


def test_tags_are_one_consumers_alone(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.queue_declare("tagged", exclusive=True)
        channel.basic_consume("tagged", print, consumer_tag="one")
        reused = pika.spec.Basic.Consume(queue="tagged", consumer_tag="one")
        channel._impl._send_method(reused)
        with pytest.raises(ConnectionClosedByBroker, match=r"530.*reuse consumer tag 'one'"):
            channel.queue_declare("tagged", passive=True)


def test_an_exclusive_consumer_keeps_others_out(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.queue_declare("alone", exclusive=True)
        channel.basic_consume("alone", print, exclusive=True)
        other = connection.channel()
        with pytest.raises(ChannelClosedByBroker, match=r"403.*in exclusive use"):
            other.basic_consume("alone", print)


def test_a_channel_that_confirms_tells_of_each_message(container: Served) -> None:
    with Connection(f"127.0.0.1:{port_of(container)}", confirm_publish=True) as connection:
        channel = connection.channel()
        channel.queue_declare("many", exclusive=True)
        for number in range(500):
            channel.basic_publish_confirm(Message(b"%d" % number), routing_key="many")
        assert channel.queue_declare("many", passive=True, exclusive=True).message_count == 500


def test_a_transaction_is_done_as_a_whole_or_not_at_all(container: Served) -> None:
    with basic_connection(container) as connection:
        looking = connection.channel()
        channel = connection.channel()
        channel.queue_declare("tx", exclusive=True)
        channel.tx_select()
        for number in range(3):
            channel.basic_publish("", "tx", b"%d" % number)
        assert looking.queue_declare("tx", passive=True).method.message_count == 0
        channel.tx_rollback()
        channel.basic_publish("", "tx", b"kept")
        channel.tx_commit()
        assert looking.queue_declare("tx", passive=True).method.message_count == 1
        method, _, body = channel.basic_get("tx")
        assert body == b"kept"
        channel.basic_ack(method.delivery_tag)
        channel.tx_rollback()
        channel.basic_ack(method.delivery_tag)
        channel.tx_commit()
        channel.close()
        assert looking.basic_get("tx") == (None, None, None)


@pytest.mark.parametrize("tag", [1, 2, 9])
def test_a_transaction_acknowledges_only_what_the_channel_has(container: Served, tag: int) -> None:
    with basic_channel(container) as channel:
        channel.queue_declare("tx", exclusive=True)
        for _ in range(2):
            channel.basic_publish("", "tx", b"x")
        channel.tx_select()
        assert [channel.basic_get("tx")[2] for _ in range(2)] == [b"x", b"x"]
        channel.basic_ack(2, multiple=True)
        channel.basic_ack(tag)
        with pytest.raises(ChannelClosedByBroker, match=f"406.*unknown delivery tag {tag}"):
            channel.tx_rollback()


def test_recover_leaves_what_a_transaction_has_acknowledged(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.queue_declare("tx", exclusive=True)
        for number in range(3):
            channel.basic_publish("", "tx", b"%d" % number)
        channel.tx_select()
        for _ in range(3):
            channel.basic_get("tx")
        channel.basic_ack(2)
        channel.basic_recover(requeue=True)
        assert [channel.basic_get("tx")[2] for _ in range(3)] == [b"0", b"2", None]
        channel.tx_rollback()
        channel.basic_nack(2)
        channel.tx_commit()
        assert channel.basic_get("tx")[2] == b"1"


def test_transactions_and_confirms_are_one_or_the_other(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.tx_select()
        with pytest.raises(ChannelClosedByBroker, match=r"406.*cannot switch from tx to confirm"):
            channel.confirm_delivery()
        channel = connection.channel()
        with pytest.raises(ChannelClosedByBroker, match=r"406.*channel is not transactional"):
            channel.tx_commit()


def test_replies_come_without_a_queue(container: Served) -> None:
    with basic_connection(container) as connection, basic_channel(container) as server:
        server.queue_declare("requests", exclusive=False, auto_delete=True)
        client = connection.channel()
        replies: list[bytes] = []
        client.basic_consume(
            "amq.rabbitmq.reply-to", lambda _c, _m, _p, body: replies.append(body), auto_ack=True
        )
        asked = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="1")
        client.basic_publish("", "requests", b"what?", asked)
        ((_, properties, _),) = taken(server, "requests", 1, auto_ack=True)
        assert properties.reply_to.startswith("amq.rabbitmq.reply-to.")
        assert properties.correlation_id == "1"
        server.queue_declare(properties.reply_to, passive=True)
        server.basic_publish("", properties.reply_to, b"that")
        connection.process_data_events(2)
        assert replies == [b"that"]
        client.close()
        with pytest.raises(ChannelClosedByBroker, match="404"):
            server.queue_declare(properties.reply_to, passive=True)


def test_all_priorities_are_told_apart(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.queue_declare("urgent", durable=True, arguments={"x-max-priority": 255})
        for priority in (200, 9, 255, None, 10, 199, 0):
            properties = pika.BasicProperties(priority=priority)
            channel.basic_publish("", "urgent", b"%d" % (priority or 0), properties)
        bodies = [int(body) for _, _, body in taken(channel, "urgent", 7, auto_ack=True)]
        assert bodies == [255, 200, 199, 10, 9, 0, 0]
        channel.queue_declare("urgent", durable=True, arguments={"x-max-priority": 255})

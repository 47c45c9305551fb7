"""Queues by AMQP 0-9-1: declared, compared, private, temporary, bound, deleted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from amqp.connection import Connection
from amqp.exceptions import NotFound, PreconditionFailed
from pika.exceptions import ChannelClosedByBroker

from .basic_clients import basic_channel, basic_connection, port_of, taken
from .served import ran, served, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingConnection

    from .served import Served


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("basic")) as running:
        yield running


def test_a_server_names_queues_and_an_empty_name_is_the_last_one(container: Served) -> None:
    with basic_channel(container) as channel:
        name = channel.queue_declare("", exclusive=True).method.queue
        assert name.startswith("amq.gen-")
        other = channel.queue_declare("", exclusive=True).method.queue
        assert name != other
        channel.basic_publish("", other, b"x")
        within(5, lambda: channel.queue_declare(other, passive=True).method.message_count == 1, "")
        assert channel.queue_purge("").method.message_count == 1


def test_a_passive_declaration_makes_nothing(container: Served) -> None:
    with basic_channel(container) as channel:
        expected = "404.*NOT_FOUND - no queue 'never' in vhost '/'"
        with pytest.raises(ChannelClosedByBroker, match=expected):
            channel.queue_declare("never", passive=True)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {"durable": True}, "arg 'durable' .*received 'true' but current is 'false'"),
        ({"auto_delete": True}, {}, "arg 'auto_delete' .*received 'false' but current is 'true'"),
        (
            {"arguments": {"x-message-ttl": 1000}},
            {"arguments": {"x-message-ttl": 2000}},
            "arg 'x-message-ttl' .*received '2000' but current is '1000'",
        ),
        (
            {"arguments": {"x-consumer-timeout": 10_000}},
            {"arguments": {"x-consumer-timeout": 20_000}},
            "arg 'x-consumer-timeout' .*received '20000' but current is '10000'",
        ),
        (
            {"arguments": {"x-max-length": 5}},
            {},
            "arg 'x-max-length' .*received none but current is the value '5' of type 'signedint'",
        ),
        (
            {},
            {"arguments": {"x-dead-letter-exchange": "amq.fanout"}},
            "received the value 'amq.fanout' of type 'longstr' but current is none",
        ),
    ],
)
def test_a_redeclaration_that_differs_is_refused(
    container: Served, first: dict[str, Any], second: dict[str, Any], expected: str
) -> None:
    with basic_connection(container) as connection:
        connection.channel().queue_declare("differs", **first)
        connection.channel().queue_declare("differs", **first)
        with pytest.raises(ChannelClosedByBroker, match=f"(?s)406.*{expected}"):
            connection.channel().queue_declare("differs", **second)
        connection.channel().queue_delete("differs")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"x-message-ttl": "soon"}, "x-message-ttl.*expected integer, got longstr"),
        ({"x-message-ttl": -1}, "{value_negative,-1}"),
        ({"x-expires": 0}, "{value_zero,0}"),
        ({"x-max-priority": 256}, "{max_value_exceeded,256}"),
        ({"x-overflow": "explode"}, "invalid_overflow"),
        ({"x-dead-letter-routing-key": "k"}, "routing_key_but_no_dlx_defined"),
        ({"x-queue-type": "odd"}, "unsupported queue type ..odd"),
    ],
)
def test_an_argument_that_cannot_be_is_refused(
    container: Served, arguments: dict[str, Any], expected: str
) -> None:
    with (
        basic_channel(container) as channel,
        pytest.raises(ChannelClosedByBroker, match=f"406.*{expected}"),
    ):
        channel.queue_declare("refused", arguments=arguments)


def test_reserved_names_are_refused(container: Served) -> None:
    with (
        basic_channel(container) as channel,
        pytest.raises(ChannelClosedByBroker, match=r"403.*reserved prefix 'amq"),
    ):
        channel.queue_declare("amq.mine")


def test_nobody_else_receives_from_an_exclusive_queue_by_amqp_1_0(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.queue_declare("locked", exclusive=True)
        channel.basic_publish("", "locked", b"x")
        refused = ran("receive", container.url, "queue/locked", "--timeout", "5")
        assert "only the connection that declared it receives from it" in refused.stderr
        assert [body for *_, body in taken(channel, "locked", 1)] == [b"x"]


def test_an_exclusive_queue_is_its_connections_alone_and_goes_with_it(container: Served) -> None:
    with basic_connection(container) as other:
        with basic_channel(container) as channel:
            channel.queue_declare("mine", exclusive=True)
            for method, arguments in (
                ("queue_declare", {"exclusive": True}),
                ("queue_declare", {"passive": True}),
                ("basic_get", {}),
                ("queue_delete", {}),
                ("queue_bind", {"exchange": "amq.direct"}),
            ):
                opened = other.channel()
                with pytest.raises(ChannelClosedByBroker, match=r"405.*RESOURCE_LOCKED"):
                    getattr(opened, method)("mine", **arguments)
        with pytest.raises(ChannelClosedByBroker, match="404"):
            other.channel().queue_declare("mine", passive=True)


def test_an_auto_delete_queue_goes_with_its_last_consumer(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.queue_declare("passing", auto_delete=True)
        first = channel.basic_consume("passing", print)
        second = channel.basic_consume("passing", print)
        found = channel.queue_declare("passing", auto_delete=True, passive=True).method
        assert found.consumer_count == 2
        channel.basic_cancel(first)
        channel.queue_declare("passing", passive=True)
        channel.basic_cancel(second)
        with pytest.raises(ChannelClosedByBroker, match="404"):
            channel.queue_declare("passing", passive=True)


def test_a_queue_that_nobody_uses_expires(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.queue_declare("expiring", arguments={"x-expires": 600})
        time.sleep(0.4)
        channel.queue_declare("expiring", passive=True)
        time.sleep(1.0)
        with pytest.raises(ChannelClosedByBroker, match="404"):
            channel.queue_declare("expiring", passive=True)


def test_deleting_asks_what_the_client_wants_to_be_so(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("busy")
        channel.basic_publish("", "busy", b"x")
        with pytest.raises(ChannelClosedByBroker, match=r"406.*'busy' in vhost '/' not empty"):
            channel.queue_delete("busy", if_empty=True)
        channel = connection.channel()
        tag = channel.basic_consume("busy", lambda *_: None)
        with pytest.raises(ChannelClosedByBroker, match=r"406.*'busy' in vhost '/' in use"):
            connection.channel().queue_delete("busy", if_unused=True)
        channel.basic_cancel(tag)
        channel.close()
        channel = connection.channel()
        assert channel.queue_delete("busy").method.message_count == 1
        assert channel.queue_delete("busy").method.message_count == 0


def test_consumers_of_a_queue_that_is_deleted_are_told(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        told: list[str] = []
        channel.add_on_cancel_callback(lambda frame: told.append(frame.method.consumer_tag))
        channel.queue_declare("leaving")
        tag = channel.basic_consume("leaving", print)
        connection.channel().queue_delete("leaving")
        connection.process_data_events(1)
        assert told == [tag]
        channel.queue_declare("leaving")  # the channel goes on
        channel.queue_delete("leaving")


def test_bindings_lead_messages_and_end(container: Served) -> None:
    with basic_channel(container) as channel:
        channel.confirm_delivery()
        channel.exchange_declare("news", "topic")
        channel.queue_declare("reader")
        channel.queue_bind("reader", "news", "sport.#")
        channel.basic_publish("news", "sport.cycling.track", b"1")
        channel.basic_publish("news", "weather", b"2")
        found = taken(channel, "reader", 1, auto_ack=True)
        assert [body for _, _, body in found] == [b"1"]
        assert [(each.exchange, each.routing_key) for each, _, _ in found] == [
            ("news", "sport.cycling.track")
        ]
        channel.cancel()
        channel.queue_unbind("reader", "news", "sport.#")
        channel.basic_publish("news", "sport.chess", b"3")
        assert channel.queue_declare("reader", passive=True).method.message_count == 0
        channel.queue_delete("reader")
        channel.exchange_delete("news")


def test_what_is_bound_has_to_be_there(container: Served) -> None:
    with basic_connection(container) as connection:
        with pytest.raises(ChannelClosedByBroker, match=r"404.*no queue 'nix'"):
            connection.channel().queue_bind("nix", "amq.direct", "k")
        connection.channel().queue_declare("bound")
        with pytest.raises(ChannelClosedByBroker, match=r"404.*no exchange 'nix'"):
            connection.channel().queue_bind("bound", "nix", "k")
        with pytest.raises(ChannelClosedByBroker, match="403"):
            connection.channel().queue_bind("bound", "", "k")
        connection.channel().queue_delete("bound")


def test_a_durable_queue_outlives_the_container(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path / "data"}"\n'
    arguments = {"x-max-length": 100, "x-message-ttl": 3_600_000}
    with served(tmp_path, head=head) as container, basic_channel(container) as channel:
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True, arguments=arguments)
        channel.queue_declare("lost")
        channel.basic_publish("", "kept", b"x")
    with served(tmp_path, head=head) as container, basic_connection(container) as connection:
        channel = connection.channel()
        found = channel.queue_declare("kept", durable=True, arguments=arguments).method
        assert found.message_count == 1
        assert channel.basic_get("kept", auto_ack=True)[2] == b"x"
        with pytest.raises(ChannelClosedByBroker, match="404"):
            channel.queue_declare("lost", passive=True)


def test_who_makes_too_many_queues_a_second_waits_and_is_answered_in_order(tmp_path: Path) -> None:
    limits = "[limits]\ndeclaration_rate_per_source = 50\n"
    with served(tmp_path, limits) as container, basic_channel(container) as channel:
        started_s = time.monotonic()
        for number in range(200):  # 100 of them at once
            channel.queue_declare(f"many-{number}", exclusive=True)
        assert 1.0 < time.monotonic() - started_s < 15


def test_a_user_has_so_many_queues_and_its_channel_is_told(tmp_path: Path) -> None:
    with served(tmp_path, "[limits]\nqueues_per_source = 3\n") as container:
        with basic_connection(container) as connection:
            for number in range(3):
                connection.channel().queue_declare(f"q-{number}", exclusive=True)
            with pytest.raises(ChannelClosedByBroker, match=r"406.*queues_per_source = 3"):
                connection.channel().queue_declare("q-3")
        with basic_channel(container) as channel:
            channel.queue_declare("q-3")


def test_many_queues_go_with_their_connection(container: Served) -> None:
    names = [f"going-{number}" for number in range(350)]
    with basic_channel(container) as channel:
        for name in names:
            channel.queue_declare(name, exclusive=True)
    with basic_channel(container) as channel:
        for name in reversed(names):  # also where the turn of one has not come yet
            channel.queue_declare(name, exclusive=True)


def test_one_active_consumer_gets_all_until_it_goes(container: Served) -> None:
    with basic_connection(container) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        arguments = {"x-single-active-consumer": True}
        channel.queue_declare("single", exclusive=True, arguments=arguments)
        got: list[str] = []
        for tag in ("one", "two"):
            channel.basic_consume(
                "single",
                lambda _channel, method, _properties, _body: got.append(method.consumer_tag),
                auto_ack=True,
                consumer_tag=tag,
            )
        assert channel.queue_declare("single", passive=True).method.consumer_count == 2
        for _ in range(3):
            channel.basic_publish("", "single", b"x")
        connection.process_data_events(0.3)
        assert got == ["one"] * 3
        channel.basic_cancel("one")
        channel.basic_publish("", "single", b"x")
        connection.process_data_events(0.3)
        assert got == ["one"] * 3 + ["two"]


def test_a_connection_has_so_many_consumers(tmp_path: Path) -> None:
    limits = "[limits]\nlinks_per_connection = 3\n"
    with served(tmp_path, limits) as container, basic_connection(container) as connection:
        for _ in range(2):  # those of a channel that has closed count no longer
            channel = connection.channel()
            channel.queue_declare("taken", exclusive=True)
            for _ in range(3):
                channel.basic_consume("taken", print)
            other = connection.channel()
            with pytest.raises(ChannelClosedByBroker, match=r"406.*links_per_connection = 3"):
                other.basic_consume("taken", print)
            channel.close()


def test_what_a_durable_queue_was_declared_with_outlives_the_container(tmp_path: Path) -> None:
    head = f'data_dir = "{tmp_path / "data"}"\n'
    arguments = {"x-single-active-consumer": True, "x-max-length": 0, "x-queue-version": 2}
    with served(tmp_path, head=head) as container, basic_channel(container) as channel:
        channel.queue_declare("single", durable=True, auto_delete=True, arguments=arguments)
        channel.queue_declare("brief", durable=True, arguments={"x-expires": 500})
        channel.queue_declare("gone", durable=True, auto_delete=True)
        channel.queue_delete("gone")
        channel.queue_declare("gone", durable=True)
    with served(tmp_path, head=head) as container, basic_channel(container) as channel:
        channel.queue_declare("gone", durable=True)
        channel.queue_declare("single", durable=True, auto_delete=True, arguments=arguments)
        with pytest.raises(ChannelClosedByBroker, match=r"406.*auto_delete"):
            channel.queue_declare("single", durable=True, arguments=arguments)
        other = channel.connection.channel()
        tags = [other.basic_consume("single", lambda *_: None) for _ in range(2)]
        for tag in tags:
            other.basic_cancel(tag)
        _wait_until_gone(channel.connection, "single")
        _wait_until_gone(channel.connection, "brief")


def _wait_until_gone(connection: BlockingConnection, name: str) -> None:
    def is_gone() -> bool:
        try:
            connection.channel().queue_declare(name, passive=True)
        except ChannelClosedByBroker as error:
            return "NOT_FOUND" in error.reply_text
        time.sleep(1)  # looking counts as use
        return False

    within(20, is_gone, f"{name} is still there")


def test_line_breaks_in_a_name_that_is_declared_do_not_count(container: Served) -> None:
    with Connection(f"127.0.0.1:{port_of(container)}") as connection:  # pika waits for the name
        channel = connection.channel()
        assert channel.queue_declare("a\r\nname\n", exclusive=True).queue == "aname"
        channel.exchange_declare("an\nexchange\r", "direct")
        channel.queue_bind("aname", "anexchange", "k")
        assert channel.queue_delete("a\nname") == 0
        channel.exchange_delete("anexchange\n")
        with pytest.raises(NotFound):
            channel.exchange_declare("anexchange", "direct", passive=True)


def test_an_argument_of_another_type_is_another_argument(container: Served) -> None:
    with Connection(f"127.0.0.1:{port_of(container)}") as connection:  # pika writes no doubles
        channel = connection.channel()
        channel.queue_declare("typed", exclusive=True, arguments={"x-message-ttl": 10})
        with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-message-ttl'"):
            channel.queue_declare("typed", exclusive=True, arguments={"x-message-ttl": 10.0})

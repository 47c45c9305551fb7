"""Queues with a home: one container keeps them, and they work alike at all that are linked."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from .basic_clients import basic_channel, basic_connection, taken
from .meshes import linked, meshed
from .served import done, ran, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

QUEUES = "".join(
    f'[[queue]]\naddress = "queue/{name}"\nhome = "a"\n'
    for name in ("q", "r", "gone", "one", "other")
)
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def queue_length(channel: BlockingChannel, name: str) -> int:
    found: int = channel.queue_declare(name, passive=True).method.message_count
    return found


def has_consumers(channel: BlockingChannel, name: str, count: int) -> bool:
    return consumers_of(channel, name) == count


def consumers_of(channel: BlockingChannel, name: str) -> int:
    found: int = channel.queue_declare(name, passive=True).method.consumer_count
    return found


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """Three containers in a row: what goes from c to the home is passed on by b."""
    folder: Path = tmp_path_factory.mktemp("homed")
    with meshed(
        folder,
        "abc",
        ["ab", "bc"],
        QUEUES,
        head=lambda name: f'data_dir = "{folder / name}"\n',
    ) as found:
        linked(found.values())
        yield found


@pytest.mark.parametrize("publisher", "abc")
@pytest.mark.parametrize("consumer", "abc")
def test_order_is_kept_from_any_container_to_any_other(
    members: dict[str, Member], publisher: str, consumer: str
) -> None:
    count = 300
    with (
        basic_channel(members[publisher].served) as sending,
        basic_channel(members[consumer].served) as channel,
    ):
        for number in range(count):
            sending.basic_publish("", "q", b"%d" % number, PERSISTENT)
        channel.basic_qos(prefetch_count=20)
        found: list[int] = []
        for method, _, body in channel.consume("q", inactivity_timeout=10):
            assert method is not None, f"{len(found)} came"
            assert not method.redelivered
            found.append(int(body))
            channel.basic_ack(method.delivery_tag)
            if len(found) == count:
                break
        channel.cancel()
    assert found == list(range(count))


def test_what_is_put_back_elsewhere_is_redelivered_anywhere(members: dict[str, Member]) -> None:
    with basic_channel(members["b"].served) as sending:
        sending.confirm_delivery()
        for number in range(4):
            sending.basic_publish("", "r", b"%d" % number, PERSISTENT)
        with basic_channel(members["c"].served) as channel:
            found = taken(channel, "r", 4)
            assert [int(body) for _, _, body in found] == list(range(4))
            channel.basic_ack(found[0][0].delivery_tag)
            channel.basic_reject(found[1][0].delivery_tag, requeue=False)
            channel.basic_nack(found[2][0].delivery_tag, requeue=True)
        again = taken(sending, "r", 2, auto_ack=True)
        assert [int(body) for _, _, body in again] == [2, 3]
        assert all(method.redelivered for method, _, _ in again)
        sending.cancel()


def test_every_container_counts_gets_and_purges_alike(members: dict[str, Member]) -> None:
    with (
        basic_channel(members["a"].served) as home,
        basic_channel(members["b"].served) as near,
        basic_channel(members["c"].served) as far,
    ):
        near.confirm_delivery()
        for number in range(6):
            near.basic_publish("", "r", b"%d" % number, PERSISTENT)
        for channel in (home, near, far):
            assert channel.queue_declare("r", passive=True).method.message_count == 6
        for at, channel in enumerate((far, home, near)):
            method, _, body = channel.basic_get("r")
            assert method is not None
            assert (int(body), method.redelivered, method.message_count) == (at, False, 5 - at)
            if channel is not near:
                channel.basic_ack(method.delivery_tag)
        for channel in (home, far):
            within(10, partial(has_consumers, channel, "r", 0), "a get is no consumer")
        near.basic_nack(method.delivery_tag)
        method, _, body = far.basic_get("r", auto_ack=True)
        assert method is not None
        assert (int(body), method.redelivered) == (2, True)
        assert far.queue_purge("r").method.message_count == 3
        for channel in (home, near, far):
            assert channel.basic_get("r") == (None, None, None)
            assert channel.queue_declare("r", passive=True).method.message_count == 0


def test_consumers_are_counted_wherever_they_are(members: dict[str, Member]) -> None:
    def counts_three(channel: BlockingChannel) -> bool:
        count: int = channel.queue_declare("r", passive=True).method.consumer_count
        return count == 3

    with (
        basic_channel(members["b"].served) as near,
        basic_channel(members["c"].served) as far,
        basic_channel(members["a"].served) as home,
    ):
        for channel in (near, far, home):
            channel.basic_consume("r", lambda *_: None)
        for channel in (near, far, home):
            within(10, partial(counts_three, channel), "three consumers are counted")


def test_a_command_purges_a_queue_at_its_home(members: dict[str, Member]) -> None:
    with basic_channel(members["a"].served) as channel:
        channel.confirm_delivery()
        for _ in range(3):
            channel.basic_publish("", "one", b"x")
        told = json.loads(done("queue", "purge", members["c"].url, "queue/one", "--json").stdout)
        assert told == {"address": "queue/one", "purged": 3}
        assert queue_length(channel, "one") == 0


def test_a_command_shows_items_at_their_home(members: dict[str, Member]) -> None:
    sizes = [1, 100, 200_000, 10, *[70_000] * 20]
    with basic_channel(members["b"].served) as channel:
        channel.confirm_delivery()
        for size in sizes:
            channel.basic_publish("", "one", bytes([97 + size % 26]) * size)
        shown = done("queue", "peek", members["c"].url, "queue/one", "--json", "--count", "30")
        here = done("queue", "peek", members["a"].url, "queue/one", "--json", "--count", "30")
        found = [json.loads(line) for line in shown.stdout.splitlines()]
        expected = [json.loads(line) for line in here.stdout.splitlines()]
        for row in (*found, *expected):
            del row["age_s"]
        assert found == expected
        assert len(found) == len(sizes)
        assert queue_length(channel, "one") == len(sizes)
        channel.queue_purge("one")


def test_a_command_moves_items_from_their_home(members: dict[str, Member]) -> None:
    with basic_channel(members["b"].served) as channel:
        channel.confirm_delivery()
        for number in range(250):
            channel.basic_publish("", "one", b"%d" % number)
        words = ("queue", "move", members["c"].url, "queue/one", "queue/other", "--json")
        told = json.loads(done(*words, "--count", "30").stdout)
        expected = {"address": "queue/one", "target": "queue/other", "refused": 0}
        assert told == {**expected, "moved": 30, "unconfirmed": 0}
        assert json.loads(done(*words).stdout)["moved"] == 220
        assert (queue_length(channel, "one"), queue_length(channel, "other")) == (0, 250)
        bodies = [body for _, _, body in taken(channel, "other", 250, auto_ack=True)]
        assert bodies == [b"%d" % number for number in range(250)]


def test_a_command_drives_dead_letters_back_from_their_home(members: dict[str, Member]) -> None:
    with basic_connection(members["b"].served) as connection:
        channel = connection.channel()
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "one"}
        channel.queue_declare("work", arguments={**arguments, "x-message-ttl": 0})
        for _ in range(3):
            channel.basic_publish("", "work", b"x")
        channel.basic_publish("", "one", b"no dead letter")
        within(10, lambda: queue_length(channel, "one") == 4, "they are dead")
        channel.queue_delete("work")
        channel.queue_declare("work")
        found = ran("queue", "redrive", members["b"].url, "queue/one", "--json")
        assert found.returncode == 8
        told = json.loads(found.stdout)
        expected = {"address": "queue/one", "moved": 3, "refused": 1, "unconfirmed": 0}
        assert told == {**expected, "strangers": 1}
        assert queue_length(channel, "one") == 1
        channel.queue_purge("one")


def test_a_queue_is_deleted_at_its_home_unless_it_is_in_use(members: dict[str, Member]) -> None:
    with (
        basic_connection(members["a"].served) as home,
        basic_connection(members["c"].served) as far,
    ):
        sending = home.channel()
        sending.confirm_delivery()
        sending.basic_publish("", "gone", b"x", PERSISTENT)
        for given, why in (({"if_empty": True}, "not empty"), ({"if_unused": True}, "in use")):
            if "if_unused" in given:
                sending.basic_consume("gone", lambda *_: None)
            with pytest.raises(ChannelClosedByBroker) as refused:
                far.channel().queue_delete("gone", **given)
            assert refused.value.reply_code == 406
            assert why in refused.value.reply_text
        sending.close()
        channel = far.channel()
        within(10, lambda: queue_length(channel, "gone") == 1, "the message is back")
        assert channel.queue_delete("gone").method.message_count == 1
        with pytest.raises(ChannelClosedByBroker, match="404"):
            home.channel().queue_declare("gone", passive=True)


def test_a_consumer_has_a_queue_alone_in_the_whole_mesh(members: dict[str, Member]) -> None:
    with (
        basic_connection(members["a"].served) as home,
        basic_connection(members["b"].served) as near,
        basic_connection(members["c"].served) as far,
    ):
        holder = far.channel()
        tag = holder.basic_consume("r", lambda *_: None, exclusive=True)
        watching = home.channel()
        within(10, lambda: consumers_of(watching, "r") == 1, "the home knows the consumer")
        for connection in (home, near, far):
            attempts: list[Callable[[BlockingChannel], object]] = [
                lambda it: it.basic_consume("r", lambda *_: None),
                lambda it: it.basic_get("r"),
            ]
            for refused in attempts:
                with pytest.raises(ChannelClosedByBroker, match="in exclusive use") as why:
                    refused(connection.channel())
                assert why.value.reply_code == 403
        holder.basic_cancel(tag)
        within(10, lambda: consumers_of(watching, "r") == 0, "the consumer has gone")
        shared = near.channel()
        shared.basic_consume("r", lambda *_: None)
        within(10, lambda: consumers_of(watching, "r") == 1, "another one is there")
        with pytest.raises(ChannelClosedByBroker, match="in exclusive use"):
            far.channel().basic_consume("r", lambda *_: None, exclusive=True)


def test_consumers_of_all_containers_take_turns(members: dict[str, Member]) -> None:
    found: dict[str, int] = dict.fromkeys("abc", 0)

    def counting(name: str) -> Callable[..., None]:
        def count(*_: object) -> None:
            found[name] += 1

        return count

    with ExitStack() as stack:
        channels = {
            name: stack.enter_context(basic_channel(members[name].served)) for name in "abc"
        }
        for name, channel in channels.items():
            channel.basic_consume("r", counting(name), auto_ack=True)
        within(10, lambda: consumers_of(channels["a"], "r") == 3, "all are there")
        for number in range(90):
            channels["b"].basic_publish("", "r", b"%d" % number)

        def are_taken() -> bool:
            for channel in channels.values():
                channel.connection.process_data_events(0.1)
            return sum(found.values()) == 90

        within(20, are_taken, "all are taken")
    assert all(20 <= count <= 40 for count in found.values()), found


def test_a_higher_priority_comes_first_wherever_it_is(members: dict[str, Member]) -> None:
    found: list[str] = []
    with (
        basic_channel(members["a"].served) as home,
        basic_channel(members["c"].served) as far,
    ):
        within(10, lambda: consumers_of(home, "r") == 0, "those of an earlier test have gone")
        home.basic_consume("r", lambda *_: found.append("home"), auto_ack=True)
        far.basic_consume(
            "r", lambda *_: found.append("far"), auto_ack=True, arguments={"x-priority": 5}
        )
        within(10, lambda: consumers_of(home, "r") == 2, "both are there")
        for number in range(20):
            home.basic_publish("", "r", b"%d" % number)

        def are_taken() -> bool:
            for channel in (home, far):
                channel.connection.process_data_events(0.1)
            return len(found) == 20

        within(20, are_taken, "all are taken")
    assert set(found) == {"far"}


def test_one_consumer_at_a_time_gets_messages_in_the_whole_mesh(
    members: dict[str, Member],
) -> None:
    found: list[tuple[str, int]] = []

    def noting(name: str) -> Callable[..., None]:
        def note(*delivered: Any) -> None:
            found.append((name, int(delivered[3])))

        return note

    with ExitStack() as stack:
        channels = {
            name: stack.enter_context(basic_channel(members[name].served)) for name in "bac"
        }
        for channel in (channels["a"], channels["b"], channels["c"]):
            channel.queue_declare("one", arguments={"x-single-active-consumer": True}, durable=True)
        tags = {}
        for count, (name, channel) in enumerate(channels.items(), 1):
            tags[name] = channel.basic_consume("one", noting(name), auto_ack=True)
            within(10, partial(has_consumers, channels["a"], "one", count), "it is counted")
        for at, name in enumerate("bac"):
            channels["c"].basic_publish("", "one", b"%d" % at)

            def is_taken(count: int = at + 1) -> bool:
                for channel in channels.values():
                    channel.connection.process_data_events(0.1)
                return len(found) == count

            within(20, is_taken, "the message is taken")
            channels[name].basic_cancel(tags[name])
    assert found == [("b", 0), ("a", 1), ("c", 2)]

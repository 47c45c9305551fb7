"""Queues with a home: one container keeps them, and they work alike at all that are linked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from .basic_clients import basic_channel, basic_connection, taken
from .meshes import linked, meshed
from .served import within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

QUEUES = "".join(
    f'[[queue]]\naddress = "queue/{name}"\nhome = "a"\n' for name in ("q", "r", "gone")
)
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def queue_length(channel: BlockingChannel, name: str) -> int:
    found: int = channel.queue_declare(name, passive=True).method.message_count
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

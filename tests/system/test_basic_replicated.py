"""Replicated queues of AMQP 0-9-1: every container gets, counts and purges alike."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pika
import pytest

from .basic_clients import basic_channel
from .meshes import linked, meshed
from .served import within
from .trios import EDGES, IDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

PERSISTENT = pika.BasicProperties(delivery_mode=2)
QUEUE = '[[queue]]\naddress = "queue/r"\ndurability = "replicated"\nreplicas = ["a", "b", "c"]\n'


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    folder: Path = tmp_path_factory.mktemp("replicated")

    def head(name: str) -> str:
        return f'data_dir = "{folder / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(folder, IDS, EDGES, QUEUE, head=head) as found:
        linked(found.values())
        yield found


def count(channel: BlockingChannel) -> int:
    found: int = channel.queue_declare("r", passive=True).method.message_count
    return found


def has(channel: BlockingChannel, messages: int) -> bool:
    return count(channel) == messages


def test_every_container_gets_counts_and_purges_alike(members: dict[str, Member]) -> None:
    with (
        basic_channel(members["a"].served) as a,
        basic_channel(members["b"].served) as b,
        basic_channel(members["c"].served) as c,
    ):
        channels = (a, b, c)
        for channel in channels:
            channel.confirm_delivery()
        for number in range(9):
            channels[number % 3].basic_publish("", "r", b"%d" % number, PERSISTENT)
        for channel in channels:
            assert count(channel) == 9
        for number, channel in enumerate(channels):
            method, _, body = channel.basic_get("r")
            assert method is not None
            assert (int(body), method.redelivered) == (number, False)
            channel.basic_nack(method.delivery_tag)
            within(10, partial(has, channel, 9 - number), "it is back")
            method, _, body = channel.basic_get("r", auto_ack=True)
            assert method is not None
            assert (int(body), method.redelivered) == (number, True)
        assert b.queue_purge("r").method.message_count == 6
        for channel in channels:
            within(10, partial(has, channel, 0), "it is empty everywhere")

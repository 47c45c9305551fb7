"""Replicated queues of AMQP 0-9-1: every container gets, counts and purges alike."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pika
import pytest

from .basic_clients import basic_channel, basic_connection
from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, done, within
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


def owner_of(member: Member) -> str | None:
    rows = json.loads(done("queue", "list", member.url, "--json").stdout)
    (owner,) = (row["owner"] for row in rows if row["address"] == "queue/r")
    return None if owner is None else str(owner)


def test_what_has_no_answer_when_the_owner_dies_is_taken_once_by_the_next(
    members: dict[str, Member],
) -> None:
    within(READY_TIMEOUT_S, lambda: owner_of(members["a"]) is not None, "somebody owns it")
    owner = owner_of(members["a"])
    assert owner is not None
    publisher, other = (name for name in IDS if name != owner)
    refused: list[int] = []
    open_: set[int] = set()

    def on_confirm(frame: pika.frame.Method) -> None:
        tag, is_multiple = frame.method.delivery_tag, frame.method.multiple
        told = {each for each in open_ if each <= tag} if is_multiple else {tag}
        open_.difference_update(told)
        if isinstance(frame.method, pika.spec.Basic.Nack):
            refused.extend(told)

    with basic_connection(members[publisher].served) as connection:
        channel = connection.channel()._impl  # its own confirms wait for each message
        channel.confirm_delivery(on_confirm)
        for number in range(1, 2001):
            open_.add(number)
            channel.basic_publish("", "r", b"%d" % number, PERSISTENT)
            if number % 50 == 0:
                connection.process_data_events(0)
            if number == 1000:
                members[owner].kill()

        def is_answered() -> bool:
            connection.process_data_events(0.05)
            return not open_

        within(60, is_answered, "each message has an answer")
    assert refused == []
    with basic_channel(members[other].served) as channel:
        found = []
        for _, _, body in channel.consume("r", auto_ack=True, inactivity_timeout=3):
            if body is None:
                break
            found.append(int(body))
    assert found == list(range(1, 2001))
    members[owner].start()
    within(READY_TIMEOUT_S, members[owner].listens, f"{owner} listens")

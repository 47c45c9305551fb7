"""Transactions of AMQP 0-9-1 while their container is killed: each is done wholly, or not."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import AMQPError, ConnectionClosedByBroker

from cogwork.container.journals.records import FIRST_GROUP
from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.file_name import file_number
from cogwork.log.record import scan_records

from .basic_clients import basic_channel, basic_connection, taken
from .meshes import linked, meshed
from .served import READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

PERSISTENT = pika.BasicProperties(delivery_mode=2)
ITEMS, KILLS, COMMITS, BATCH = 4_000, 2, 60, 8
QUEUES = ("source", "left", "right", "third")


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    head = f'data_dir = "{tmp_path / "data"}"\n'
    with meshed(tmp_path, ["a"], [], head=lambda _name: head) as members:
        within(READY_TIMEOUT_S, members["a"].listens, "it listens")
        yield members["a"]


class Mover(threading.Thread):
    """Moves items from one queue to three others, some in each transaction, until it is cut off."""

    def __init__(self, member: Member) -> None:
        super().__init__()
        self.member = member
        self.commits = 0

    def run(self) -> None:
        try:
            with basic_channel(self.member.served) as channel:
                channel.tx_select()
                while self.move(channel):
                    self.commits += 1
        except (AMQPError, OSError):
            pass  # the container was killed

    def has_moved(self) -> bool:
        return self.commits >= COMMITS

    def move(self, channel: BlockingChannel) -> bool:
        for _ in range(BATCH):
            method, _, body = channel.basic_get("source")
            if method is None:
                return False
            channel.basic_publish("amq.fanout", "", body, PERSISTENT)
            channel.basic_publish("", "third", body, PERSISTENT)
            channel.basic_ack(method.delivery_tag)
        channel.tx_commit()
        return True


def declared(channel: BlockingChannel) -> None:
    for name in QUEUES:
        channel.queue_declare(name, durable=True)
    for name in ("left", "right"):
        channel.queue_bind(name, "amq.fanout")
    for number in range(ITEMS):
        channel.basic_publish("", "source", b"%d" % number, PERSISTENT)
    channel.queue_declare("source", passive=True)


def has_all(member: Member) -> bool:
    with basic_channel(member.served) as channel:
        counts: list[int] = [
            channel.queue_declare(name, passive=True).method.message_count
            for name in ("source", "third")
        ]
        return sum(counts) == ITEMS


def joined(folder: Path) -> int:
    """Count the turns of which several records are in a log, and are to count together."""
    names = set()
    for file in folder.rglob("*.wal"):
        records = scan_records(file.read_bytes(), HEADER_BYTES, file_number(file.name) or 0)
        names |= {each.term for each in records if each.group >= FIRST_GROUP and each.term}
    return len(names)


def held(member: Member, name: str) -> list[int]:
    """Return the numbers in a queue, which keeps them."""
    with basic_connection(member.served) as connection:
        channel = connection.channel()
        count = channel.queue_declare(name, passive=True).method.message_count
        return sorted(int(body) for _, _, body in taken(channel, name, count)) if count else []


def test_a_container_that_is_killed_has_done_each_transaction_wholly_or_not_at_all(
    member: Member, tmp_path: Path
) -> None:
    with basic_channel(member.served) as channel:
        declared(channel)
    committed = 0
    for _ in range(KILLS):
        mover = Mover(member)
        mover.start()
        within(60, mover.has_moved, "some are committed")
        member.kill()
        mover.join()
        committed += mover.commits
        assert joined(tmp_path / "data") >= committed
        member.start()
        within(READY_TIMEOUT_S, member.listens, "it listens again")
        within(60, lambda: has_all(member), "what was out at the mover waits again")
        source, *moved = (held(member, name) for name in QUEUES)
        assert moved[0] == moved[1] == moved[2]
        assert sorted(source + moved[0]) == list(range(ITEMS))
        assert len(moved[0]) % BATCH == 0
        assert len(moved[0]) >= committed * BATCH


APART = "".join(
    f'[[queue]]\naddress = "queue/{name}"\nhome = "{home}"\n'
    for name, home in (("one", "a"), ("two", "a"), ("far", "b"))
)


def test_what_would_be_done_in_several_places_is_refused_before_it_begins(
    tmp_path: Path,
) -> None:
    with meshed(tmp_path, "ab", ["ab"], APART) as members:
        linked(members.values())
        near, far = members["a"].served, members["b"].served

        def counts() -> list[int]:
            with basic_channel(near) as channel:
                return [
                    channel.queue_declare(name, passive=True).method.message_count
                    for name in ("one", "two", "far")
                ]

        for container in (near, far):
            with basic_channel(container) as channel:
                channel.tx_select()
                channel.basic_publish("", "one", b"x")
                channel.basic_publish("", "two", b"x")
                channel.tx_commit()
        within(10, lambda: counts() == [2, 2, 0], "both are committed")
        expected = "540.*NOT_IMPLEMENTED.*'queue/one' and 'queue/far' in vhost '/' are apart"
        with basic_channel(near) as channel:
            channel.tx_select()
            channel.basic_publish("", "one", b"x")
            channel.basic_publish("", "far", b"x")
            with pytest.raises(ConnectionClosedByBroker, match=f"(?s){expected}"):
                channel.tx_commit()
        assert counts() == [2, 2, 0]
        with basic_channel(near) as channel:
            channel.tx_select()
            method, _, _ = channel.basic_get("two")
            channel.basic_publish("", "far", b"x")
            channel.basic_ack(method.delivery_tag)
            with pytest.raises(ConnectionClosedByBroker, match="'queue/far' and 'queue/two'"):
                channel.tx_commit()
        within(10, lambda: counts() == [2, 2, 0], "what was not acknowledged waits again")
        with basic_channel(far) as channel:
            channel.tx_select()
            method, _, _ = next(iter(channel.consume("one", inactivity_timeout=10)))
            channel.basic_publish("", "two", b"x")
            channel.basic_ack(method.delivery_tag)
            channel.tx_commit()
        within(10, lambda: counts() == [1, 3, 0], "one home")


def test_a_stream_is_a_place_of_its_own(member: Member) -> None:
    with basic_channel(member.served) as channel:
        channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_declare("source", durable=True)
        channel.tx_select()
        channel.basic_publish("", "log", b"x")
        channel.tx_commit()
        channel.basic_publish("", "log", b"x")
        channel.basic_publish("", "source", b"x")
        with pytest.raises(ConnectionClosedByBroker, match="'stream/log' and 'queue/source'"):
            channel.tx_commit()

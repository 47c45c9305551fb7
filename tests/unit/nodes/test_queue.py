"""The queue node between links, and the kit that every node passes."""

from __future__ import annotations

import gc
import json
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest

from cogwork.amqp.message import Sections, decode_sections
from cogwork.amqp.terminus import COPY, Source
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.store import Store
from cogwork.nodes.queue import QueueNode, QueueOptions
from cogwork.plugin.conformance.nodes import NodeConformance
from cogwork.plugin.loopback import Loopback
from cogwork.plugin.node import NodeContext, Refused, Subscription


class TestQueue(NodeConformance):
    factory = QueueNode
    address = "queue/under-test"


def queue(**options: object) -> Loopback:
    return Loopback(QueueNode, "work/a", options)


def node(loop: Loopback) -> QueueNode:
    assert isinstance(loop.node, QueueNode)
    return loop.node


def letters(loop: Loopback) -> list[tuple[str, Sections]]:
    return [(effect.address, decode_sections(effect.message)) for effect in loop.sent_on]


def test_what_expired_goes_to_the_dead_letter_address() -> None:
    with queue(dead_letter="queue/dead", ttl_s=1) as loop:
        loop.send(3)
        loop.run(ticks=20)
        assert [address for address, _ in letters(loop)] == ["queue/dead"] * 3
        annotations = letters(loop)[0][1].message_annotations
        assert annotations is not None
        assert annotations["x-opt-dead-letter-reason"] == "expired"  # type: ignore[index]  # a symbol is a str
        assert node(loop).status()["expired"] == 3


def test_or_it_is_only_counted() -> None:
    with queue(ttl_s=1) as loop:
        loop.send(3)
        loop.run(ticks=20)
        assert loop.sent_on == []
        assert node(loop).status()["depth"] == 0


@pytest.mark.parametrize("own", ["work/a", "/work/a"])
def test_so_it_is_where_a_queue_is_its_own_dead_letter_address(own: str) -> None:
    with queue(ttl_s=1, dead_letter=own) as loop:
        loop.send(3)
        loop.run(ticks=20)
        assert loop.sent_on == []
        assert (node(loop).status()["depth"], node(loop).status()["expired"]) == (0, 3)


def test_a_browser_takes_nothing() -> None:
    with queue() as loop:
        loop.send(3)
        browser = loop.receive(10, Source(address="work/a", distribution_mode=COPY))
        assert browser.deliveries == 3
        assert node(loop).store.depth == 3


class NoDisk:
    """Journals that take no queue."""

    has_disk = True
    shard = 7

    def open(self, address: str, options: object, store: Store) -> NoReturn:
        del options, store
        raise Refused(f"{address} is to be kept on disk, and that has failed")


def test_a_queue_that_is_refused_leaves_nothing() -> None:
    core = Core()
    options = {"durability": "disk", "dead_letter": "queue/dead"}
    journals: Any = NoDisk()

    def stores() -> int:
        gc.collect()
        return sum(isinstance(each, Store) for each in gc.get_objects())

    before = stores()
    for _ in range(3):
        with pytest.raises(Refused, match="has failed"):
            QueueNode(
                NodeContext(
                    core=core,
                    address="work/a",
                    is_prefix=False,
                    options=options,
                    container_id="box",
                    emit=Mock(),
                    journals=journals,
                )
            )
    assert stores() == before


def test_a_full_queue_answers_once_there_is_room() -> None:
    with queue(maximum_length=2) as loop:
        sent = loop.send(3)
        assert loop.outcomes == sent[:2]
        node(loop).purge()
        loop.run(ticks=1)
        assert loop.outcomes == sent


def test_a_consumer_that_comes_back_is_told_what_it_still_has() -> None:
    with queue() as loop:
        loop.send(2)
        loop.leave(loop.receive(1))
        tags = (b"\x00" * 15 + b"\x01", b"strange")
        link = loop.receive(0)
        subscription = Subscription(
            link=link, address="work/a", source=Source(address="work/a"), unsettled=tags
        )
        node(loop).subscribe(subscription)
        assert subscription.known == {tags[0]: None}


def test_what_is_sent_to_a_queue_that_is_gone_is_not_accepted() -> None:
    loop = queue()
    entry = loop.node.entry("work/a")
    loop.node.close()
    assert entry.outlets == []


def test_its_status_holds_its_options() -> None:
    with queue(priorities=3) as loop:
        status = json.loads(json.dumps(dict(node(loop).status())))
        assert status["options"]["priorities"] == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ttl_s", 0),
        ("ttl_s", True),
        ("maximum_length", -1),
        ("maximum_length_policy", "explode"),
        ("in_doubt", "forget"),
        ("in_doubt_timeout_s", -1),
        ("priorities", 257),
        ("delay", 1),
        ("ordering", "fifo"),
        ("deduplication_count", "many"),
        ("dead_letter", ""),
    ],
)
def test_a_wrong_option_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(Refused, match=f"queue option {name} = .*; expected"):
        QueueOptions.of({name: value, "unmatched": "accept"})


def test_consumers_that_never_come_back_are_forgotten_though_some_item_stays_in_doubt() -> None:
    with queue(in_doubt="park") as loop:
        here = node(loop)
        store, here.store = here.store, Mock()
        here.store.counts.return_value = {"in-doubt": 1}
        here.store.take_exceptions.return_value = here.store.resume.return_value = []
        here.store.leased_to.return_value = {7}
        for serial in range(1, 1001):
            here.store.serial_of.return_value = serial
            here.unsubscribe(
                Subscription(
                    Mock(), "work/a", Source(), remote_consumer=f"far/{serial}", is_cut_off=True
                )
            )
            here.tick(0.0)
        assert len(here._cut_off) <= 65
        here.subscribe(Subscription(Mock(), "work/a", Source(), remote_consumer="far/7"))
        here.store.take_back.assert_called_once_with(7)
        here.store = store

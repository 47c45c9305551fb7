"""What is counted of addresses and containers that come and go for as long as a container runs."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

from hosted import Hosted
from wires import Peer

from cogwork.config.telemetry_settings import Telemetry
from cogwork.container.telemetry import heartbeat, traffic
from cogwork.container.telemetry.heartbeat import Heartbeat
from cogwork.container.telemetry.traffic import WAITS_KEPT_S, Traffic, latency_of
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.queue.histogram import Histogram
from cogwork.nodes.queue import QueueNode

if TYPE_CHECKING:
    import pytest

KEPT, USED = 10, 100
JOBS = "work/jobs"
MESSAGE = b"\x00\x53\x75\xa0\x01a"


class Sender:
    """Stands behind a port, and does not care for outcomes."""

    def on_batch(self, port: Port) -> None:
        port.outcomes.clear()


def look(counted: Traffic, hosted: Hosted, now_s: float = 1.0) -> None:
    container = hosted.container
    counted.look(container.vhosts, container.mesh, iter(container.peers.connections), now_s)


def send_near(hosted: Hosted, address: str) -> None:
    """Have a message come from another container."""
    vhost = hosted.container.vhosts[""]
    assert vhost.near.send(Port(hosted.core, Sender()), 1, address.encode(), MESSAGE, True)


def node_of(hosted: Hosted, address: str) -> QueueNode:
    node = hosted.container.vhosts[""].nodes[address]
    assert isinstance(node, QueueNode)
    return node


def test_addresses_that_have_gone_are_forgotten_and_their_messages_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "ADDRESSES_MAX", KEPT)
    hosted, counted = Hosted(), Traffic()
    vhost = hosted.container.vhosts[""]
    peer = Peer(hosted).greet()
    standing = peer.publisher("topic/standing")
    for number in range(USED):
        address = f"topic/{number}"
        publisher = peer.publisher(address)
        for each in (publisher, standing):
            each.send(b"counted")
        look(counted, hosted)
        publisher.detach()
        vhost.drop(address)
    assert len(counted.addresses) <= KEPT
    assert counted.addresses["", "topic/standing"].totals[0] == USED
    sums = counted.addresses.values()
    assert counted.forgotten[0] + sum(each.totals[0] for each in sums) == 2 * USED


def test_a_queue_that_is_deleted_is_looked_at_one_last_time_and_let_go() -> None:
    hosted, counted = Hosted(), Traffic()
    vhost = hosted.container.vhosts[""]
    peer = Peer(hosted).greet()
    publisher, consumer = peer.publisher(JOBS), peer.consumer(JOBS, credit=100)
    publisher.send(MESSAGE)
    look(counted, hosted)
    for _ in range(5):
        publisher.send(MESSAGE)
    consumer.accept_all()
    publisher.detach()
    consumer.detach()
    gone = weakref.ref(node_of(hosted, JOBS))
    vhost.remove_node(JOBS)
    look(counted, hosted)
    look(counted, hosted)
    assert counted.addresses["", JOBS].totals[:2] == [6, 6]
    gc.collect()
    assert gone() is None


def test_an_address_that_is_another_one_at_the_next_look_has_both_ones_messages() -> None:
    hosted, counted = Hosted(), Traffic()
    vhost = hosted.container.vhosts[""]
    peer = Peer(hosted).greet()
    for address, forget in ((JOBS, vhost.remove_node), ("topic/news", vhost.drop)):
        peer.publisher(address).send(MESSAGE)
        look(counted, hosted)
        peer.publisher(address).send(MESSAGE)
        forget(address)
        peer.publisher(address).send(MESSAGE)
        look(counted, hosted)
        look(counted, hosted)
        assert counted.addresses["", address].totals[0] == 3


def test_what_is_forgotten_is_looked_at_one_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "ADDRESSES_MAX", 2)
    hosted, counted = Hosted(), Traffic()
    publisher = Peer(hosted).greet().publisher(JOBS)
    publisher.send(MESSAGE)
    look(counted, hosted)
    publisher.send(MESSAGE)
    hosted.container.vhosts[""].remove_node(JOBS)
    look(counted, hosted)
    assert counted.forgotten == [2, 0]


def test_deliveries_of_what_comes_from_other_containers_count_here() -> None:
    hosted, counted = Hosted(), Traffic()
    vhost = hosted.container.vhosts[""]
    peer = Peer(hosted).greet()
    for address in ("unicast/x", "topic/t"):
        consumers = [peer.consumer(address, credit=100) for _ in range(2)]
        send_near(hosted, address)
        look(counted, hosted)
        for _ in range(4):
            send_near(hosted, address)
        vhost.forget_idle(hosted.core.now)
        send_near(hosted, address)
        look(counted, hosted)
        look(counted, hosted)
        hosted.settle_down()
        received = sum(len(each.bodies) for each in consumers)
        assert received == (6 if address == "unicast/x" else 12)
        told = [known.totals[1] for key, known in counted.addresses.items() if key[1] == address]
        root = counted.addresses["", "topic/"].totals
        assert sum(told) + (root[1] if address == "topic/t" else 0) == received
        assert root[0] == 0


def test_what_goes_with_a_link_from_another_container_is_known_before() -> None:
    hosted, counted = Hosted(), Traffic()
    vhost = hosted.container.vhosts[""]
    Peer(hosted).greet().consumer("unicast/x", credit=100)
    look(counted, hosted)
    for _ in range(3):
        send_near(hosted, "unicast/x")
        counted.look_at_near(hosted.container.vhosts, 1.0)
        send_near(hosted, "unicast/x")
        vhost.forget_idle(hosted.core.now)
    look(counted, hosted)
    assert counted.addresses["", "unicast/x"].totals == [0, 6, 0]


def test_a_queue_counts_its_attempts_once() -> None:
    hosted, counted = Hosted(), Traffic()
    peer = Peer(hosted).greet()
    peer.publisher(JOBS).send(MESSAGE)
    send_near(hosted, JOBS)
    consumer = peer.consumer(JOBS, credit=100)
    look(counted, hosted)
    assert len(consumer.bodies) == 2
    assert counted.addresses["", JOBS].totals[1] == 2


def test_a_queue_that_was_quiet_for_two_minutes_has_no_latency() -> None:
    hosted, counted = Hosted(), Traffic()
    peer = Peer(hosted).greet()
    publisher, consumer = peer.publisher(JOBS), peer.consumer(JOBS, credit=100)
    store = node_of(hosted, JOBS).store
    store.waits = Histogram()
    look(counted, hosted)
    assert latency_of(store) is None

    def count() -> int:
        told = latency_of(store)
        return 0 if told is None else told["count"]

    for _ in range(3):
        publisher.send(MESSAGE)
    consumer.accept_all()
    for now_s, expected in ((10.0, 3), (WAITS_KEPT_S, 3), (WAITS_KEPT_S + 10.0, 0)):
        look(counted, hosted, now_s)
        assert count() == expected
    publisher.send(MESSAGE)
    look(counted, hosted, 1000.0)
    assert count() == 1


def test_pairs_without_a_link_are_forgotten_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "PAIRS_MAX", KEPT)
    hosted, counted = Hosted(), Traffic()
    for number in range(USED):
        counted.matrix[f"unicast/{number}", "b"] = [1, 10]
        look(counted, hosted)
        assert len(counted.matrix) <= KEPT


def test_a_record_tells_the_busiest_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "PAIRS_TOLD_MAX", 2)
    beat = Heartbeat(Hosted().container, Telemetry())
    beat._traffic.matrix |= {(f"unicast/{each}", "b"): [each, each] for each in (0, 3, 1, 2)}
    assert [row["address"] for row in beat._matrix()] == ["unicast/3", "unicast/2"]

"""Whom the container detaches: slow subscribers, unfinished deliveries, and nobody else."""

import time
from typing import Any

import pytest
from hosted import LISTEN, Hosted
from wires import Peer, frame

from cogwork.amqp.errors import Condition
from cogwork.amqp.outcomes import Accepted
from cogwork.amqp.performatives import Flow, Open
from cogwork.config.limits import Limits
from cogwork.config.settings import Address, Configuration
from cogwork.container.connections.slow_peers import detach_overdue

TIMEOUT_S = 0.05


@pytest.fixture
def hosted() -> Hosted:
    address: dict[str, Any] = {
        "distribution": "multicast",
        "block_timeout_s": TIMEOUT_S,
        "block_bytes": 10_000,
    }
    return Hosted(
        Configuration(
            id="hosted",
            listeners=[LISTEN],
            addresses=[
                Address(prefix="all", **address),
                Address(prefix="dropping", slow_subscriber="drop-oldest", **address),
                Address(
                    prefix="awaited", slow_subscriber="drop-oldest", accept="settled", **address
                ),
                Address(prefix="one", distribution="closest", block_timeout_s=TIMEOUT_S),
            ],
        )
    )


def peer(hosted: Hosted, **settings: int) -> Peer:
    return Peer(hosted, **settings).greet()


def pass_time(hosted: Hosted) -> None:
    """Let more than the time-out pass, and the container look around."""
    time.sleep(TIMEOUT_S * 1.5)
    hosted.core.tick()
    detach_overdue(hosted.core)
    hosted.settle_down()


def test_a_subscriber_that_takes_nothing_is_detached(hosted: Hosted) -> None:
    slow, fast = (peer(hosted).consumer("all/a", credit) for credit in (0, 100))
    peer(hosted).publisher("all/a").send()
    pass_time(hosted)
    assert slow.detached is not None
    assert slow.detached.error is not None
    assert slow.detached.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED
    assert fast.detached is None


def test_a_subscriber_whose_backlog_is_full_is_detached_at_once(hosted: Hosted) -> None:
    slow = peer(hosted).consumer("all/a")
    publisher = peer(hosted).publisher("all/a")
    for _ in range(3):
        publisher.send(b"x" * 6000)
    detach_overdue(hosted.core)
    hosted.settle_down()
    assert slow.detached is not None


def test_a_consumer_of_single_messages_may_take_its_time(hosted: Hosted) -> None:
    """It reads nothing for a while in the middle of a large message, busy with another."""
    consumer = peer(hosted, incoming_window=1).consumer("one/a", credit=5)
    publisher = peer(hosted).publisher("one/a")
    publisher.send(b"x" * 100_000, pieces=4)
    assert not consumer.last.complete
    pass_time(hosted)
    assert consumer.detached is None
    for _ in range(4):
        consumer.channel.flow()
    assert consumer.bodies == [b"x" * 100_000]


@pytest.mark.parametrize("address", ["all/a", "one/a"])
def test_a_publisher_that_pauses_in_a_delivery_harms_no_subscriber(
    hosted: Hosted, address: str
) -> None:
    consumer = peer(hosted).consumer(address, credit=50)
    publisher = peer(hosted).publisher(address)
    publisher.start(b"begin")
    pass_time(hosted)
    assert consumer.detached is None
    assert publisher.detached is None
    publisher.more(b"end", more=False)
    assert consumer.bodies == [b"beginend"]


@pytest.mark.parametrize("address", ["all/a", "one/a"])
def test_a_publisher_that_leaves_a_delivery_unfinished_may_not_stop_others(
    hosted: Hosted, address: str
) -> None:
    consumer = peer(hosted).consumer(address, credit=50)
    hostile, other = peer(hosted).publisher(address), peer(hosted).publisher(address)
    hostile.start(b"begin")
    other.send(b"waits")
    assert consumer.bodies == []
    pass_time(hosted)
    assert hostile.detached is not None
    assert hostile.detached.error is not None
    assert hostile.detached.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED
    assert consumer.detached is None
    assert consumer.bodies == [b"waits"]
    assert other.detached is None


def test_a_full_backlog_behind_an_unfinished_delivery_is_its_publishers_fault(
    hosted: Hosted,
) -> None:
    consumer = peer(hosted).consumer("all/a", credit=50)
    hostile, other = peer(hosted).publisher("all/a"), peer(hosted).publisher("all/a")
    hostile.start(b"begin")
    for _ in range(3):
        other.send(b"x" * 6000)
    detach_overdue(hosted.core)
    hosted.settle_down()
    assert hostile.detached is not None
    assert consumer.detached is None
    assert len(consumer.bodies) == 3


def test_a_dropping_subscriber_stuck_in_a_large_delivery_is_detached(hosted: Hosted) -> None:
    stuck = peer(hosted, incoming_window=1).consumer("dropping/a", credit=9)
    idle = peer(hosted).consumer("dropping/a")
    publisher = peer(hosted).publisher("dropping/a")
    publisher.send(b"x" * 100_000, pieces=4)
    pass_time(hosted)
    assert stuck.detached is not None
    assert idle.detached is None


def test_an_idle_subscriber_that_has_prefetched_keeps_no_publisher_waiting(
    hosted: Hosted,
) -> None:
    idle = peer(hosted).consumer("all/a", credit=10)
    publisher = peer(hosted).publisher("all/a")
    sent = publisher.send(b"prefetched")
    assert publisher.outcomes == {sent: Accepted()}
    pass_time(hosted)
    assert idle.detached is None
    idle.accept()
    assert idle.bodies == [b"prefetched"]


@pytest.mark.parametrize("frames", [0, 1])
def test_who_takes_nothing_holds_a_publisher_back_for_a_time_only(
    hosted: Hosted, frames: int
) -> None:
    """For want of credit, or of the session's window: its messages have been accepted."""
    slow = peer(hosted, incoming_window=1).consumer("all/a", credit=frames)
    publisher = peer(hosted).publisher("all/a")
    while publisher.credit:
        publisher.send()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    pass_time(hosted)
    assert slow.detached is not None
    assert publisher.credit > 0
    assert hosted.core.held_bytes == 0


def test_what_waits_for_a_dropping_subscriber_stays_where_no_publisher_waits_for_it(
    hosted: Hosted,
) -> None:
    stuck = peer(hosted).consumer("dropping/a")
    publisher = peer(hosted).publisher("dropping/a")
    sent = publisher.send(b"kept")
    assert publisher.outcomes == {sent: Accepted()}
    pass_time(hosted)
    stuck.flow(10)
    assert stuck.bodies == [b"kept"]


def test_no_publisher_waits_for_good_for_a_dropping_subscriber(hosted: Hosted) -> None:
    stuck = peer(hosted).consumer("awaited/a")
    slow = peer(hosted).consumer("awaited/a", credit=1)
    publisher = peer(hosted).publisher("awaited/a")
    first = publisher.send(b"first")
    slow.accept_all()
    publisher.send(b"settled", settled=True)
    second = publisher.send(b"second")
    last = publisher.send(b"last", settled=True)
    assert publisher.outcomes == {}
    pass_time(hosted)
    assert publisher.outcomes.keys() == {first, second}
    assert publisher.credit > 0
    assert last not in publisher.outcomes
    assert stuck.detached is None
    assert slow.detached is None
    for each in (stuck, slow):
        each.flow(10)
    assert stuck.bodies == [b"last"]
    assert slow.bodies == [b"first", b"last"]
    publisher.send(b"more")
    assert stuck.bodies[-1] == b"more"


def test_short_heartbeats_are_kept(hosted: Hosted) -> None:
    impatient = Peer(hosted)
    impatient.feed(b"AMQP\x00\x01\x00\x00")
    impatient.say(Open(container_id="impatient", idle_time_out=100))
    before = impatient.wire.bytes_out
    time.sleep(0.06)
    hosted.core.tick()
    hosted.container.peers.beat(hosted.core.now)
    hosted.settle_down()
    assert impatient.wire.bytes_out == before + 8


def test_who_asks_and_reads_no_answer_is_closed(hosted: Hosted) -> None:
    limits = Limits(unsent_bytes=1000, max_frame_size_bytes=512)
    hosted.container.peers.limit(limits)
    deaf, patient = peer(hosted), peer(hosted)
    consumers = [each.consumer("one/a") for each in (deaf, patient)]
    asked = frame(
        Flow(
            next_incoming_id=0,
            incoming_window=100,
            next_outgoing_id=0,
            outgoing_window=100,
            handle=consumers[0].handle,
            delivery_count=0,
            link_credit=1,
            echo=True,
        )
    )
    deaf.is_deaf = patient.is_deaf = True
    deaf.wire.feed(asked * 10_000)
    patient.wire.feed(asked * 100)
    hosted.container.peers.sweep(hosted.core.now)
    assert deaf.finished
    assert not patient.finished
    assert list(hosted.container.peers.connections) == [patient.connection]

"""Copies for other containers: whoever publishes learns where one of them did not get through."""

from __future__ import annotations

import pytest
from wires import BLOCK, DROP_OLDEST, Broker, Consumer, Publisher

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.outcomes import Accepted, DeliveryState, Modified, Rejected, Released
from cogwork.amqp.types import Symbol
from cogwork.dataplane.addresses.entry import MULTICAST_CODE, AddressEntry
from cogwork.dataplane.addresses.lost_branch import LostBranch
from cogwork.dataplane.transport.outgoing import OutgoingLink

IN_DOUBT = Modified(delivery_failed=True)
BIG = b"x" * 200_000


def branch(broker: Broker, credit: int = 0, **options: bool) -> Consumer:
    """Attach what leads to another container."""
    found = broker.peer().consumer("all/a", **options)
    assert isinstance(found.end, OutgoingLink)
    found.end.is_branch = True
    if credit:
        found.flow(credit)
    return found


@pytest.fixture
def publisher(broker: Broker) -> Publisher:
    return broker.peer().publisher("all/a")


@pytest.fixture
def subscriber(broker: Broker) -> Consumer:
    return broker.peer().consumer("all/a", credit=1000)


def test_accepted_once_every_branch_has_accepted(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    away = branch(broker, credit=10)
    sent = publisher.send()
    assert publisher.outcomes == {}, "accepted before the other container has it"
    away.accept()
    assert publisher.outcomes == {sent: Accepted()}
    subscriber.settle(Rejected())
    assert publisher.answers == {sent: 1}
    broker.assert_clean()


@pytest.mark.parametrize("said", [Rejected(), Released(), Modified()], ids=lambda each: each.NAME)
def test_a_branch_that_refuses_leaves_the_publisher_in_doubt(
    broker: Broker, publisher: Publisher, subscriber: Consumer, said: DeliveryState
) -> None:
    away = branch(broker, credit=10)
    sent = publisher.send()
    away.settle(said)
    assert publisher.outcomes == {sent: IN_DOUBT}
    assert len(subscriber.bodies) == 1
    broker.assert_clean()


WORST_FIRST: list[DeliveryState] = [
    Rejected(error=AmqpError(condition=Symbol("test:refused"), description="not like this")),
    Modified(undeliverable_here=True),
    Released(),
    Accepted(),
]


@pytest.mark.parametrize("near", range(4))
@pytest.mark.parametrize("far", range(4))
@pytest.mark.parametrize("count", [1, 9])
def test_where_settlement_is_awaited_a_branchs_outcome_counts_like_a_subscribers(
    broker: Broker, near: int, far: int, count: int
) -> None:
    broker.awaits_settlement = True
    publisher = broker.peer().publisher("all/a")
    subscriber = broker.peer().consumer("all/a", credit=100)
    away = branch(broker, credit=10)
    sent = publisher.send_at_once([b"%03d" % number + b"x" * 100 for number in range(count)])
    for arrival in away.arrivals:
        away.channel.settle(arrival.id, state=WORST_FIRST[far])
    assert publisher.outcomes == {}, "answered before everybody was"
    for arrival in subscriber.arrivals:
        subscriber.channel.settle(arrival.id, state=WORST_FIRST[near])
    assert publisher.outcomes == dict.fromkeys(sent, WORST_FIRST[min(near, far)])
    broker.assert_clean()


@pytest.mark.parametrize("credit", [0, 10], ids=["queued", "sent"])
def test_where_settlement_is_awaited_a_lost_branch_still_leaves_doubt(
    broker: Broker, credit: int
) -> None:
    broker.awaits_settlement = True
    publisher = broker.peer().publisher("all/a")
    subscriber = broker.peer().consumer("all/a", credit=10)
    away = branch(broker, credit=credit)
    sent = publisher.send()
    subscriber.accept()
    away.channel.peer.vanish()
    assert publisher.outcomes == {sent: IN_DOUBT}
    broker.assert_clean()


@pytest.mark.parametrize("said", [Rejected(), Released(), Modified()], ids=lambda each: each.NAME)
def test_a_subscriber_that_refuses_has_been_served(
    broker: Broker, publisher: Publisher, subscriber: Consumer, said: DeliveryState
) -> None:
    away = branch(broker, credit=10)
    sent = publisher.send()
    subscriber.settle(said)
    away.accept()
    assert publisher.outcomes == {sent: Accepted()}
    broker.assert_clean()


def test_a_branch_that_is_lost_leaves_its_messages_in_doubt_and_no_others(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    away = branch(broker, credit=10)
    first, second, third = (publisher.send(b"%d" % number) for number in range(3))
    away.accept(away.arrivals[0])
    away.channel.peer.vanish()
    subscriber.accept_all()
    assert publisher.outcomes == {first: Accepted(), second: IN_DOUBT, third: IN_DOUBT}
    after = publisher.send()
    subscriber.accept_all()
    assert publisher.outcomes[after] == Accepted()
    broker.assert_clean()


def test_a_subscriber_that_is_lost_leaves_nothing_in_doubt(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    away = branch(broker, credit=10)
    sent = publisher.send()
    away.accept()
    subscriber.channel.peer.vanish()
    assert publisher.outcomes == {sent: Accepted()}
    broker.assert_clean()


@pytest.mark.parametrize("order", ["before", "after"])
def test_what_waits_for_a_branch_counts_as_a_branchs(
    broker: Broker, publisher: Publisher, order: str
) -> None:
    if order == "after":
        subscriber = broker.peer().consumer("all/a")
    away = branch(broker)
    if order == "before":
        subscriber = broker.peer().consumer("all/a")
    sent = [publisher.send(b"%d" % number) for number in range(4)]
    subscriber.flow(10)
    for arrival in subscriber.arrivals:
        subscriber.channel.settle(arrival.id, state=Rejected())
    away.flow(2)
    away.accept_all()
    assert publisher.outcomes == {sent[0]: Accepted(), sent[1]: Accepted()}
    away.flow(2)
    away.settle(Released())
    away.accept(away.arrivals[2])
    assert publisher.outcomes[sent[2]] == Accepted()
    assert publisher.outcomes[sent[3]] == IN_DOUBT
    broker.assert_clean()


def test_what_waits_for_a_branch_that_goes_is_in_doubt(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    away = branch(broker, credit=1)
    sent = [publisher.send(b"%d" % number) for number in range(5)]
    subscriber.accept_all()
    away.accept_all()
    away.detach()
    assert publisher.outcomes == {
        sent[0]: Accepted(),
        **dict.fromkeys(sent[1:], IN_DOUBT),
    }
    broker.assert_clean()


@pytest.mark.parametrize("credit", [0, 3, 5, 100])
@pytest.mark.parametrize("is_settled", [False, True])
def test_runs_reach_branches_and_subscribers_alike(
    broker: Broker, publisher: Publisher, subscriber: Consumer, credit: int, is_settled: bool
) -> None:
    away = branch(broker, credit=credit)
    slow = broker.peer().consumer("all/a", credit=credit)
    bodies = [b"%03d" % number + b"x" * 100 for number in range(20)]
    sent = publisher.send_at_once(bodies, settled=is_settled)
    slow.flow(100)
    away.flow(100)
    assert away.bodies == slow.bodies == subscriber.bodies == bodies
    if is_settled:
        broker.assert_clean()
        return
    for number, arrival in enumerate(away.arrivals):
        away.channel.settle(arrival.id, state=Rejected() if number % 5 == 4 else Accepted())
    for arrival in slow.arrivals:
        slow.channel.settle(arrival.id, state=Rejected())
    subscriber.accept_all()
    assert publisher.outcomes == {
        number: IN_DOUBT if at % 5 == 4 else Accepted() for at, number in enumerate(sent)
    }
    broker.assert_clean()


def test_a_run_under_way_to_a_branch_that_is_lost_is_in_doubt(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    away = branch(broker, credit=12)
    sent = publisher.send_at_once([b"%03d" % number + b"x" * 100 for number in range(20)])
    subscriber.accept_all()
    for arrival in away.arrivals[:6]:
        away.accept(arrival)
    away.channel.peer.vanish()
    assert publisher.outcomes == {
        number: Accepted() if at < 6 else IN_DOUBT for at, number in enumerate(sent)
    }
    broker.assert_clean()


def test_a_branch_drops_nothing_unnoticed_where_the_address_drops_for_slow_subscribers(
    broker: Broker, publisher: Publisher
) -> None:
    broker.policy, broker.backlog_bytes_max = DROP_OLDEST, 300
    slow = broker.peer().consumer("all/a")
    broker.policy = BLOCK
    away = branch(broker, credit=100)
    for number in range(10):
        publisher.send(b"%d" % number + b"x" * 100)
    away.accept_all()
    assert len(away.arrivals) == 10
    slow.flow(100)
    slow.accept_all()
    assert len(slow.arrivals) < 10
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


# -- messages of many frames


def whole(broker: Broker) -> None:
    """Have an address take whole messages only, as those do whose branches may be lost."""
    broker.entry("all/a").assembles = True


@pytest.mark.parametrize("said", [Accepted(), Released()], ids=lambda each: each.NAME)
def test_a_big_message_to_a_branch_counts_as_a_branchs(
    broker: Broker, publisher: Publisher, subscriber: Consumer, said: DeliveryState
) -> None:
    whole(broker)
    away = branch(broker, credit=10)
    sent = publisher.send(BIG, pieces=5)
    assert away.bodies == subscriber.bodies == [BIG]
    subscriber.settle(Rejected())
    away.settle(said)
    assert publisher.outcomes == {sent: Accepted() if said == Accepted() else IN_DOUBT}
    broker.assert_clean()


def test_a_big_message_half_of_which_reached_a_branch_that_is_lost_is_in_doubt(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    whole(broker)
    away = branch(broker)
    away.channel.flow(incoming_window=2)
    away.channel.flow(incoming_window=2, handle=away.handle, delivery_count=0, link_credit=10)
    sent = publisher.send(BIG, pieces=5)
    assert away.bodies == []
    subscriber.accept_all()
    away.channel.peer.vanish()
    assert publisher.outcomes == {sent: IN_DOUBT}
    broker.assert_clean()


# -- containers that cannot be reached


def test_a_lost_branch_leaves_the_publisher_in_doubt(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    lost = LostBranch(broker.core)
    broker.entry("all/a").add_outlet(lost)
    one = publisher.send()
    subscriber.accept()
    assert publisher.outcomes == {one: IN_DOUBT}
    many = publisher.send_at_once([b"%03d" % number + b"x" * 100 for number in range(9)])
    subscriber.accept_all()
    big = publisher.send(BIG, pieces=4)
    subscriber.accept_all()
    assert publisher.outcomes == dict.fromkeys([one, *many, big], IN_DOUBT)
    publisher.send(settled=True)
    assert lost.messages == 12
    broker.entry("all/a").remove_outlet(lost)
    lost.close()
    after = publisher.send()
    subscriber.accept_all()
    assert publisher.outcomes[after] == Accepted()
    broker.assert_clean()


def test_a_lost_branch_alone_is_somebody(broker: Broker, publisher: Publisher) -> None:
    broker.entry("all/a").add_outlet(LostBranch(broker.core))
    sent = publisher.send()
    assert publisher.outcomes == {sent: IN_DOUBT}
    assert broker.entry("all/a").unmatched == 0


def test_a_branch_that_was_given_up_is_nobody_and_notes_what_it_misses(
    broker: Broker, publisher: Publisher, subscriber: Consumer
) -> None:
    gone = LostBranch(broker.core, True)
    broker.entry("all/a").add_outlet(gone)
    assert gone.gave_up
    assert (gone.missed, gone.missed_at_s) == (0, 0.0)
    one = publisher.send()
    many = publisher.send_at_once([b"%03d" % number + b"x" * 100 for number in range(9)])
    big = publisher.send(BIG, pieces=4)
    subscriber.accept_all()
    assert publisher.outcomes == dict.fromkeys([one, *many, big], Accepted())
    assert len(subscriber.bodies) == 11
    assert (gone.missed, gone.messages) == (11, 0)
    assert 0.0 < gone.missed_at_s <= broker.core.now
    publisher.send(settled=True)
    assert gone.missed == 11, "nobody was told that it is accepted"
    gone.close()


@pytest.mark.parametrize(
    ("releases", "expected"), [(False, Accepted()), (True, Released())], ids=["accept", "release"]
)
def test_a_branch_that_was_given_up_matches_nothing(
    broker: Broker, publisher: Publisher, releases: bool, expected: DeliveryState
) -> None:
    entry = broker.entry("all/a")
    entry.release_unmatched = releases
    gone = LostBranch(broker.core, True)
    entry.add_outlet(gone)
    sent = publisher.send()
    many = publisher.send_at_once([b"%03d" % number for number in range(9)])
    assert publisher.outcomes == dict.fromkeys([sent, *many], expected)
    assert entry.delivered == 0
    assert gone.missed == 10
    broker.assert_clean()


def test_a_port_behind_a_branch_is_a_subscriber_all_the_same(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    away = branch(broker, credit=10)
    broker.entry("all/a").add_outlet(broker.node)
    sent = publisher.send()
    (_, token, source, _) = broker.taken[0]
    assert source is not None
    source.settle(token, 0x25)
    away.accept()
    assert publisher.outcomes == {sent: Accepted()}


def test_what_comes_from_another_container_goes_to_no_branch(broker: Broker) -> None:
    near = AddressEntry(broker.core, "all/a", MULTICAST_CODE)
    early = broker.peer().consumer("all/a", credit=10)
    away = branch(broker, credit=10)
    lost, later = LostBranch(broker.core), LostBranch(broker.core)
    broker.entry("all/a").add_outlet(lost)
    broker.entry("all/a").show_near(near)
    late = broker.peer().consumer("all/a", credit=10)
    broker.entry("all/a").add_outlet(later)
    broker.space.entries[b"near"] = near
    other = broker.peer().publisher("near")
    sent = other.send(b"from afar")
    assert early.bodies == late.bodies == [b"from afar"]
    early.accept()
    late.accept()
    assert other.outcomes == {sent: Accepted()}
    assert away.bodies == []
    assert lost.messages == later.messages == 0
    late.detach()
    other.send(b"again", settled=True)
    assert early.bodies == [b"from afar", b"again"]
    assert late.bodies == [b"from afar"]
    broker.assert_clean()

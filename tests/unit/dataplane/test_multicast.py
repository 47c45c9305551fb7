"""Multicast: to everybody; accepted once it is sent or queued, or settled where that is awaited."""

from itertools import permutations

import pytest
from wires import BLOCK, DETACH, DROP_OLDEST, Broker

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.outcomes import Accepted, DeliveryState, Modified, Rejected, Released
from cogwork.amqp.types import Symbol

REFUSED = Rejected(error=AmqpError(condition=Symbol("test:refused"), description="not like this"))
FAILED = Modified(delivery_failed=True, undeliverable_here=True)
WORST_FIRST: list[DeliveryState] = [REFUSED, FAILED, Released(), Accepted()]


def test_every_subscriber_gets_each_message_once_and_in_order(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    subscribers = [broker.peer().consumer("all/a", credit=50) for _ in range(4)]
    sent = [b"%d" % number for number in range(10)]
    for body in sent:
        publisher.send(body)
    assert [each.bodies for each in subscribers] == [sent] * 4


@pytest.mark.parametrize("pieces", [1, 3])
def test_accepted_once_every_subscriber_has_it_on_its_link_or_queued(
    broker: Broker, pieces: int
) -> None:
    publisher = broker.peer().publisher("all/a")
    idle = broker.peer().consumer("all/a", credit=5)
    slow = broker.peer().consumer("all/a")
    delivery = publisher.send(b"x" * 100, pieces=pieces)
    assert publisher.outcomes == {delivery: Accepted()}
    assert idle.bodies == [b"x" * 100]
    assert not idle.last.settled
    slow.flow(5)
    assert slow.bodies == [b"x" * 100]
    idle.settle(Rejected())
    slow.channel.peer.vanish()
    assert publisher.answers == {delivery: 1}
    broker.assert_clean()


def test_a_run_is_accepted_once_it_is_sent_or_queued(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    fast, slow = (broker.peer().consumer("all/a", credit=credit) for credit in (100, 7))
    bodies = [b"%03d" % number + b"x" * 100 for number in range(20)]
    sent = publisher.send_at_once(bodies)
    assert publisher.outcomes == dict.fromkeys(sent, Accepted())
    assert fast.bodies == bodies
    assert slow.bodies == bodies[:7]
    slow.flow(100)
    assert slow.bodies == bodies
    for each in (fast, slow):
        each.accept_all()
        assert each.end.unsettled == 0
    assert publisher.answers == dict.fromkeys(sent, 1)
    broker.assert_clean()


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("policy", [BLOCK, DROP_OLDEST, DETACH])
def test_what_waits_is_charged_to_a_publisher_that_has_its_answer(
    broker: Broker, policy: int, pieces: int
) -> None:
    broker.policy = policy
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    sent = [publisher.send(b"x" * 30, pieces=pieces) for _ in range(broker.window)]
    assert publisher.outcomes == dict.fromkeys(sent, Accepted())
    assert publisher.end.unsettled == 0
    assert publisher.end.charged == (broker.window if policy == BLOCK else 0)
    assert (publisher.credit == 0) is (policy == BLOCK)
    slow.flow(1000)
    assert publisher.end.charged == 0
    assert publisher.credit >= broker.window // 2
    broker.assert_clean()


def test_a_subscriber_that_goes_frees_the_publisher_it_held_back(broker: Broker) -> None:
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    while publisher.credit:
        publisher.send()
    slow.channel.peer.vanish()
    assert publisher.credit == broker.window
    broker.assert_clean()


def test_a_large_message_that_is_given_up_is_accepted_by_nobody(broker: Broker) -> None:
    broker.peer().consumer("all/a", credit=5)
    publisher = broker.peer().publisher("all/a")
    publisher.start(b"begin")
    assert publisher.outcomes == {}
    publisher.abort()
    assert publisher.outcomes == {}
    assert publisher.end.unsettled == 0
    broker.assert_clean()


def test_a_subscriber_that_never_settles_takes_no_more_memory_than_the_ring(
    broker: Broker,
) -> None:
    hoarder = broker.peer(incoming_window=10**6).consumer("all/a", credit=10**6)
    publisher = broker.peer().publisher("all/a")
    count = 70_000
    body = b"x" * 100
    for _ in range(count // 100):
        publisher.send_at_once([body] * 100)
    assert len(hoarder.arrivals) == count
    assert hoarder.end.unsettled <= 65_536
    hoarder.channel.settle(0, count - 1, state=Accepted())
    assert hoarder.end.unsettled == 0


# -- where the address awaits settlement


@pytest.fixture
def awaiting(broker: Broker) -> Broker:
    broker.awaits_settlement = True
    return broker


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_outcome_is_the_worst_of_all_subscribers(
    awaiting: Broker, order: tuple[int, ...], pieces: int
) -> None:
    publisher = awaiting.peer().publisher("all/a")
    said = [WORST_FIRST[at] for at in order]
    for count in range(1, len(said) + 1):
        subscribers = [awaiting.peer().consumer("all/a", credit=5) for _ in range(count)]
        delivery = publisher.send(b"message", pieces=pieces)
        for subscriber, outcome in zip(subscribers, said, strict=False):
            assert delivery not in publisher.outcomes
            subscriber.settle(outcome)
        assert publisher.outcomes[delivery] == WORST_FIRST[min(order[:count])]
        for subscriber in subscribers:
            subscriber.detach()
    awaiting.assert_clean()


@pytest.mark.parametrize("credit", [0, 4, 100])
def test_each_message_of_a_run_has_the_worst_of_its_own_outcomes(
    awaiting: Broker, credit: int
) -> None:
    publisher = awaiting.peer().publisher("all/a")
    one = awaiting.peer().consumer("all/a", credit=100)
    other = awaiting.peer().consumer("all/a", credit=credit)
    sent = publisher.send_at_once([b"%03d" % number + b"x" * 100 for number in range(12)])
    other.flow(100)
    one.accept_all()
    assert publisher.outcomes == {}
    said: list[DeliveryState] = [WORST_FIRST[number % 4] for number in range(12)]
    for arrival, outcome in zip(other.arrivals, said, strict=True):
        other.channel.settle(arrival.id, state=outcome)
    assert publisher.outcomes == dict(zip(sent, said, strict=True))
    awaiting.assert_clean()


def test_a_subscriber_that_goes_says_nothing_of_what_it_had(awaiting: Broker) -> None:
    publisher = awaiting.peer().publisher("all/a")
    one, two, slow = (awaiting.peer().consumer("all/a", credit=n) for n in (5, 5, 0))
    delivery = publisher.send()
    one.settle(Released())
    assert publisher.outcomes == {}
    two.channel.peer.vanish()
    assert publisher.outcomes == {}
    slow.detach()
    assert publisher.outcomes == {delivery: Released()}
    awaiting.assert_clean()


def test_subscribers_that_want_messages_settled_are_done_when_sent(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    subscriber = broker.peer().consumer("all/a", credit=5, presettled=True)
    delivery = publisher.send()
    assert subscriber.last.settled
    assert publisher.outcomes == {delivery: Accepted()}
    broker.assert_clean()


def test_without_a_subscriber_it_is_accepted_and_counted(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    delivery = publisher.send()
    assert publisher.outcomes == {delivery: Accepted()}
    assert broker.entry("all/a").unmatched == 1


def test_without_a_subscriber_it_is_released_where_the_address_asks_for_that(
    broker: Broker,
) -> None:
    broker.entry("all/a").release_unmatched = True
    publisher = broker.peer().publisher("all/a")
    whole = publisher.send()
    large = publisher.send(b"in pieces", pieces=3)
    assert publisher.outcomes == {whole: Released(), large: Released()}


def test_refused_by_every_filter_is_as_good_as_no_subscriber(broker: Broker) -> None:
    broker.entry("all/a").release_unmatched = True
    broker.selector = lambda _message: False
    broker.peer().consumer("all/a", credit=5)
    publisher = broker.peer().publisher("all/a")
    whole = publisher.send()
    large = publisher.send(b"in pieces", pieces=3)
    assert publisher.outcomes == {whole: Released(), large: Released()}
    broker.assert_clean()


def test_no_local_leaves_out_what_came_by_the_same_connection(broker: Broker) -> None:
    broker.no_local = True
    peer, other = broker.peer(), broker.peer()
    mine = peer.consumer("all/a", credit=5)
    theirs = other.consumer("all/a", credit=5)
    peer.publisher("all/a").send(b"x")
    peer.publisher("all/a").send(b"large", pieces=2)
    assert mine.bodies == []
    assert theirs.bodies == [b"x", b"large"]


def test_two_publishers_tags_cannot_clash_at_a_subscriber(broker: Broker) -> None:
    """A tag is unique on its link while unsettled (§2.6.12); each publisher counts its own."""
    subscriber = broker.peer().consumer("all/a", credit=5)
    for _ in range(2):
        broker.peer().publisher("all/a").send()
    assert len({arrival.tag for arrival in subscriber.arrivals}) == 2


def test_a_slow_subscriber_withholds_the_window_of_a_settling_publisher(broker: Broker) -> None:
    broker.policy = BLOCK
    slow = broker.peer().consumer("all/a", credit=1)
    fast = broker.peer().consumer("all/a", credit=1000)
    publisher = broker.peer().publisher("all/a")
    for _ in range(broker.window):
        publisher.send(settled=True)
    assert len(fast.arrivals) == broker.window
    assert publisher.credit <= 1
    slow.flow(1000)
    assert publisher.credit == broker.window
    assert len(slow.arrivals) == broker.window
    broker.assert_clean()


def test_a_dropping_subscriber_does_not_free_what_a_blocking_one_still_holds(
    broker: Broker,
) -> None:
    broker.policy = DROP_OLDEST
    dropping = broker.peer().consumer("all/a")
    broker.policy = BLOCK
    blocking = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    for _ in range(broker.window):
        publisher.send(settled=True)
    dropping.flow(1000)
    assert publisher.end.charged == broker.window
    blocking.flow(1000)
    assert publisher.end.charged == 0


def test_a_full_backlog_makes_a_blocking_subscriber_overdue(broker: Broker) -> None:
    broker.backlog_bytes_max = 1000
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    for _ in range(11):
        publisher.send(b"x" * 100)
    assert broker.core.overdue == [slow.end]


def test_detach_policy_makes_it_overdue_without_withholding_anything(broker: Broker) -> None:
    broker.policy = DETACH
    broker.backlog_bytes_max = 1000
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    for _ in range(10):
        publisher.send(b"x" * 100, settled=True)
    assert broker.core.overdue == []
    assert publisher.end.charged == 0
    publisher.send(b"x" * 100, settled=True)
    assert broker.core.overdue == [slow.end]


@pytest.mark.parametrize("is_awaited", [False, True])
def test_drop_oldest_keeps_the_newest_and_counts(broker: Broker, is_awaited: bool) -> None:
    broker.awaits_settlement = is_awaited
    broker.policy = DROP_OLDEST
    broker.backlog_bytes_max = 300
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    deliveries = [publisher.send(b"%03d" % number * 33) for number in range(10)]
    assert slow.end.dropped == 7
    slow.flow(100)
    assert slow.bodies == [b"%03d" % number * 33 for number in (7, 8, 9)]
    answered = deliveries[:7] if is_awaited else deliveries
    assert set(publisher.outcomes) == set(answered)
    slow.accept_all()
    assert publisher.outcomes == dict.fromkeys(deliveries, Accepted())
    assert slow.end.backlog_bytes == 0
    broker.assert_clean()


def test_a_blocked_subscriber_is_listed_with_the_time_it_last_moved(broker: Broker) -> None:
    slow = broker.peer().consumer("all/a")
    broker.peer().publisher("all/a").send()
    assert broker.core.blocked_links() == [slow.end]
    assert slow.end.blocked_since_s <= broker.core.now
    slow.flow(1)
    assert broker.core.blocked_links() == []


def test_a_subscriber_that_goes_frees_all_it_kept(broker: Broker) -> None:
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    deliveries = [publisher.send(), publisher.send(b"large" * 10, pieces=3)]
    publisher.send(settled=True)
    slow.detach()
    assert publisher.outcomes == dict.fromkeys(deliveries, Accepted())
    assert publisher.end.charged == 0
    broker.assert_clean()

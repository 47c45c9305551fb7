"""Multicast: to everybody; accepted once all subscribers have settled or gone."""

from wires import BLOCK, DETACH, DROP_OLDEST, Broker

from cogwork.amqp.outcomes import Accepted, Rejected, Released


def test_every_subscriber_gets_each_message_once_and_in_order(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    subscribers = [broker.peer().consumer("all/a", credit=50) for _ in range(4)]
    sent = [b"%d" % number for number in range(10)]
    for body in sent:
        publisher.send(body)
    assert [each.bodies for each in subscribers] == [sent] * 4


def test_accepted_only_when_all_have_settled_whatever_they_say(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    one, two, three = (broker.peer().consumer("all/a", credit=5) for _ in range(3))
    delivery = publisher.send()
    one.accept()
    two.settle(Rejected())
    assert publisher.outcomes == {}
    three.settle(Released())
    assert publisher.outcomes == {delivery: Accepted()}
    broker.assert_clean()


def test_accepted_when_the_last_unsettled_subscriber_goes(broker: Broker) -> None:
    publisher = broker.peer().publisher("all/a")
    one, two = (broker.peer().consumer("all/a", credit=5) for _ in range(2))
    delivery = publisher.send()
    one.accept()
    assert publisher.outcomes == {}
    two.channel.peer.vanish()
    assert publisher.outcomes == {delivery: Accepted()}
    broker.assert_clean()


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


def test_drop_oldest_keeps_the_newest_and_counts(broker: Broker) -> None:
    broker.policy = DROP_OLDEST
    broker.backlog_bytes_max = 300
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    deliveries = [publisher.send(b"%03d" % number * 33) for number in range(10)]
    assert slow.end.dropped == 7
    slow.flow(100)
    assert slow.bodies == [b"%03d" % number * 33 for number in (7, 8, 9)]
    assert set(publisher.outcomes) == set(deliveries[:7])
    slow.accept_all()
    assert set(publisher.outcomes) == set(deliveries)
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

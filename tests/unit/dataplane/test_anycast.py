"""Closest and balanced: each delivery to one consumer; held while nobody has room."""

import pytest
from wires import Broker, Consumer

from cogwork.amqp.outcomes import Accepted, Modified, Released


def test_closest_takes_consumers_strictly_in_turn(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumers = [broker.peer().consumer("one/a", credit=50) for _ in range(3)]
    for number in range(9):
        publisher.send(b"%d" % number)
    assert [c.bodies for c in consumers] == [
        [b"0", b"3", b"6"],
        [b"1", b"4", b"7"],
        [b"2", b"5", b"8"],
    ]


def test_closest_passes_over_a_consumer_without_credit(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    first = broker.peer().consumer("one/a", credit=1)
    second = broker.peer().consumer("one/a", credit=50)
    for number in range(4):
        publisher.send(b"%d" % number)
    assert first.bodies == [b"0"]
    assert second.bodies == [b"1", b"2", b"3"]


def test_balanced_prefers_whoever_has_least_unsettled(broker: Broker) -> None:
    publisher = broker.peer().publisher("least/a")
    slow = broker.peer().consumer("least/a", credit=50)
    fast = broker.peer().consumer("least/a", credit=50)
    for _ in range(10):
        publisher.send()
        fast.accept_all()
    assert len(slow.arrivals) == 1
    assert len(fast.arrivals) == 9


def test_held_deliveries_are_served_in_order_when_credit_comes(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=1)
    for number in range(5):
        publisher.send(b"%d" % number, settled=number % 2 == 0)
    assert broker.entry("one/a").held == 4
    consumer.flow(10)
    assert consumer.bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert broker.entry("one/a").held == 0
    consumer.accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


def test_held_settled_deliveries_withhold_the_publishers_credit(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=broker.window)
    publisher = broker.peer().publisher("one/a")
    consumer.flow(0)
    for _ in range(broker.window):
        publisher.send(settled=True)
    assert publisher.end.charged == broker.window
    assert publisher.credit == 0
    consumer.flow(1000)
    assert publisher.end.charged == 0
    assert publisher.credit == broker.window


def test_held_deliveries_are_released_when_the_last_consumer_goes(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=1)
    first, second, third = (publisher.send() for _ in range(3))
    publisher.send(settled=True)
    consumer.accept()
    consumer.detach()
    assert publisher.outcomes == {first: Accepted(), second: Released(), third: Released()}
    assert publisher.end.unsettled == 0
    assert publisher.end.charged == 0
    broker.assert_clean()


def test_a_delivery_in_doubt_is_modified_as_failed(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=10)
    delivery = publisher.send()
    consumer.channel.peer.vanish()
    assert publisher.outcomes == {delivery: Modified(delivery_failed=True)}
    broker.assert_clean()


def test_what_a_lost_consumer_had_not_been_sent_goes_to_the_next(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    lost = broker.peer().consumer("one/a", credit=1)
    other = broker.peer().consumer("one/a")
    publisher.send(b"in doubt")
    publisher.send(b"held")
    lost.channel.peer.vanish()
    other.flow(10)
    assert other.bodies == [b"held"]


def test_messages_of_a_node_are_held_and_dropped_like_any(broker: Broker) -> None:
    """What a node sends has no link behind it, which the last consumer's end must allow for."""
    consumer = broker.peer().consumer("one/a", credit=1)
    entry = broker.entry("one/a")
    for number in range(3):
        entry.send(broker.node, number, b"from a node", settled=True)
    broker.settle_down()
    assert len(consumer.arrivals) == 1
    assert entry.held == 2
    consumer.detach()
    assert entry.held == 0
    broker.assert_clean()


def test_a_selector_decides_who_can_have_a_message(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    broker.selector = lambda message: message.startswith(b"a")
    picky = broker.peer().consumer("one/a", credit=10)
    broker.selector = None
    other = broker.peer().consumer("one/a", credit=10)
    for body in (b"b1", b"a1", b"b2", b"b3"):
        publisher.send(body)
    assert picky.bodies == [b"a1"]
    assert other.bodies == [b"b1", b"b2", b"b3"]


def test_a_selector_sees_all_of_what_had_half_come_when_it_did(broker: Broker) -> None:
    publisher, first = broker.peer().publisher("one/a"), broker.peer().consumer("one/a", credit=1)
    publisher.send(b"first")
    publisher.start(b"half")
    broker.selector = lambda message: len(message) < 10
    small = broker.peer().consumer("one/a", credit=5)
    broker.selector = None
    assert broker.entry("one/a").held == 0, "it is assembled, beside the window of its session"
    publisher.more(b" and the other half", more=False)
    publisher.send(b"next")
    assert small.bodies == []
    first.flow(5)
    assert first.bodies == [b"first", b"half and the other half"]
    assert small.bodies == [b"next"]


def test_what_no_selector_lets_through_is_held_until_somebody_wants_it(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    broker.selector = lambda message: message.startswith(b"a")
    broker.peer().consumer("one/a", credit=10)
    publisher.send(b"b1")
    assert broker.entry("one/a").held == 1
    broker.selector = None
    assert broker.peer().consumer("one/a", credit=10).bodies == [b"b1"]


def test_a_message_to_nobody_is_released(broker: Broker) -> None:
    publisher = broker.peer().publisher(None)
    delivery = publisher.send(b"\x00\x53\x73\xc0\x0a\x03\x40\x40\xa1\x05one/a\x00\x53\x75\xa0\x01x")
    assert publisher.outcomes == {delivery: Released()}


def test_an_anonymous_publisher_reaches_the_address_in_to(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=10)
    publisher = broker.peer().publisher(None)
    message = b"\x00\x53\x73\xc0\x0a\x03\x40\x40\xa1\x05one/a\x00\x53\x75\xa0\x01x"
    publisher.send(message)
    publisher.start(message)
    publisher.more(b"and more", more=False)
    assert consumer.bodies == [message, message + b"and more"]


def test_an_anonymous_message_without_to_is_released(broker: Broker) -> None:
    publisher = broker.peer().publisher(None)
    delivery = publisher.send(b"\x00\x53\x75\xa0\x01x")
    assert publisher.outcomes == {delivery: Released()}
    delivery = publisher.send(b"\x00\x53\x75\xa0\x04abcd", pieces=2)
    assert publisher.outcomes[delivery] == Released()
    assert publisher.end.unsettled == 0


def far(broker: Broker, address: str, credit: int, cost: int = 1) -> Consumer:
    """Attach a consumer that is as far away as that."""
    consumer = broker.peer().consumer(address)
    consumer.end.is_branch = True
    consumer.end.cost = cost
    consumer.flow(credit)
    return consumer


@pytest.mark.parametrize("is_far_first", [False, True])
@pytest.mark.parametrize("credit", [0, 3])
def test_closest_gives_nothing_to_others_while_a_nearer_one_is_attached(
    broker: Broker, credit: int, is_far_first: bool
) -> None:
    if is_far_first:
        away = far(broker, "one/a", 100)
    near = broker.peer().consumer("one/a", credit=credit)
    if not is_far_first:
        away = far(broker, "one/a", 100)
    publisher = broker.peer().publisher("one/a")
    bodies = [b"%d" % number for number in range(10)]
    publisher.send_at_once(bodies)
    assert near.bodies == bodies[:credit]
    assert away.bodies == []
    near.flow(5)
    assert near.bodies == bodies[: credit + 5]
    near.detach()
    assert away.bodies == bodies[credit + 5 :]
    broker.assert_clean()


def test_closest_takes_those_at_the_least_cost_in_turn(broker: Broker) -> None:
    farthest = far(broker, "one/a", 100, cost=3)
    middle = [far(broker, "one/a", 2, cost=2) for _ in range(2)]
    publisher = broker.peer().publisher("one/a")
    bodies = [b"%d" % number for number in range(6)]
    publisher.send_at_once(bodies)
    assert [each.bodies for each in middle] == [[b"0", b"2"], [b"1", b"3"]]
    assert farthest.bodies == []
    for each in middle:
        each.end.cost = 4
    broker.entry("one/a").reconsider()
    broker.settle_down()
    assert farthest.bodies == [b"4", b"5"]


def test_closest_leaves_to_others_what_a_nearer_ones_selector_refuses(broker: Broker) -> None:
    broker.selector = lambda message: message.startswith(b"a")
    near = broker.peer().consumer("one/a")
    broker.selector = None
    away = far(broker, "one/a", 100)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"b")
    publisher.send(b"a")
    assert away.bodies == [b"b"]
    near.flow(1)
    assert near.bodies == [b"a"]


def test_closest_gives_senders_no_credit_for_what_only_farther_ones_can_take(
    broker: Broker,
) -> None:
    near = broker.peer().consumer("one/a", credit=40)
    far(broker, "one/a", 1000)
    publisher = broker.peer().publisher("one/a")
    assert publisher.credit == 40
    near.detach()
    assert publisher.credit == broker.window


@pytest.mark.parametrize("cost", [1, 5])
def test_balanced_spills_over_to_those_farther_away(broker: Broker, cost: int) -> None:
    near = broker.peer().consumer("least/a", credit=20)
    away = far(broker, "least/a", 100, cost=cost)
    publisher = broker.peer().publisher("least/a")
    for _ in range(40):
        publisher.send()
    assert len(near.arrivals) + len(away.arrivals) == 40
    assert len(near.arrivals) >= len(away.arrivals) > 0

"""Anycast between containers: consumers at a cost, and consumers that others reach, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.amqp.outcomes import Accepted, Released
from cogwork.dataplane.addresses.entry import BALANCED_CODE, CLOSEST_CODE, AddressEntry
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from wires import Broker, Consumer


def consumer(broker: Broker, address: str, cost: int = 0, credit: int = 100) -> Consumer:
    """Attach a consumer that stands `cost` away; 0 is this container's own."""
    found = broker.peer().consumer(address)
    assert isinstance(found.end, OutgoingLink)
    if cost:
        broker.entry(address).remove_outlet(found.end)
        found.end.cost = cost
        found.end.is_branch = True
        broker.entry(address).add_outlet(found.end)
    if credit:
        found.flow(credit)
    return found


def near_of(broker: Broker, address: str, code: int = CLOSEST_CODE) -> AddressEntry:
    """Show the consumers of an address to publishers of `near/…`, as those of other containers."""
    near = AddressEntry(broker.core, f"near/{address}", code)
    broker.space.entries[f"near/{address}".encode()] = near
    broker.entry(address).show_near(near)
    return near


# -- cost


def test_closest_gives_to_others_only_once_its_own_consumers_are_gone(broker: Broker) -> None:
    far, farther = consumer(broker, "one/a", 1), consumer(broker, "one/a", 2)
    own = [consumer(broker, "one/a", credit=3) for _ in range(2)]
    publisher = broker.peer().publisher("one/a")
    for number in range(10):
        publisher.send(b"%d" % number)
    assert [each.bodies for each in own] == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]
    assert far.bodies == farther.bodies == []
    own[1].flow(1)
    assert own[1].bodies[-1] == b"6"
    for each in own:
        each.detach()
    assert far.bodies == [b"7", b"8", b"9"]
    far.detach()
    publisher.send(b"10")
    assert farther.bodies == [b"10"]


def test_closest_keeps_to_the_nearest_of_those_that_are_all_elsewhere(broker: Broker) -> None:
    farther = consumer(broker, "one/a", 2)
    far = [consumer(broker, "one/a", 1, credit=2) for _ in range(2)]
    publisher = broker.peer().publisher("one/a")
    for number in range(6):
        publisher.send(b"%d" % number)
    assert [each.bodies for each in far] == [[b"0", b"2"], [b"1", b"3"]]
    assert farther.bodies == []
    far[0].flow(2)
    assert far[0].bodies[2:] == [b"4", b"5"]


def test_balanced_weighs_the_way_against_what_is_unsettled(broker: Broker) -> None:
    far = consumer(broker, "least/a", 3)
    own = consumer(broker, "least/a")
    publisher = broker.peer().publisher("least/a")
    for _ in range(9):
        publisher.send()
    assert len(own.arrivals) - len(far.arrivals) == 3
    assert len(far.arrivals) == 3
    own.accept_all()
    publisher.send()
    assert len(own.arrivals) == 7


# -- near entries


@pytest.mark.parametrize("is_shown_first", [True, False])
def test_messages_from_elsewhere_reach_only_this_containers_consumers(
    broker: Broker, is_shown_first: bool
) -> None:
    if is_shown_first:
        near_of(broker, "least/a", BALANCED_CODE)
    own, away = consumer(broker, "least/a"), consumer(broker, "least/a", 9)
    if not is_shown_first:
        near_of(broker, "least/a", BALANCED_CODE)
    other = broker.peer().publisher("near/least/a")
    publisher = broker.peer().publisher("least/a")
    other.send(b"from elsewhere")
    publisher.send(b"from here")
    assert own.bodies == [b"from elsewhere", b"from here"]
    own.flow(0)
    publisher.send(b"there")
    other.send(b"held")
    assert away.bodies == [b"there"]
    assert broker.entry("near/least/a").held == 1
    own.flow(10)
    assert own.bodies[-1] == b"held"
    own.accept_all()
    away.accept_all()
    assert other.outcomes == dict.fromkeys(other.sent, Accepted())
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


def test_a_consumers_credit_lets_senders_of_both_kinds_start(broker: Broker) -> None:
    near_of(broker, "one/a")
    publisher = broker.peer().publisher("one/a")
    other = broker.peer().publisher("near/one/a")
    assert publisher.credit == other.credit == 0
    own = consumer(broker, "one/a", credit=0)
    assert publisher.credit == other.credit == 0
    own.flow(20)
    assert publisher.credit > 0
    assert other.credit > 0


def test_credit_for_others_consumers_lets_nobody_elsewhere_start(broker: Broker) -> None:
    near_of(broker, "one/a")
    publisher = broker.peer().publisher("one/a")
    other = broker.peer().publisher("near/one/a")
    away = consumer(broker, "one/a", 1)
    assert publisher.credit > 0
    assert other.credit == 0
    away.detach()
    assert publisher.credit == other.credit == 0


def test_what_both_kinds_of_senders_left_waiting_is_served_by_the_same_credit(
    broker: Broker,
) -> None:
    near = near_of(broker, "one/a")
    own = consumer(broker, "one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    other = broker.peer().publisher("near/one/a")
    for number in range(3):
        publisher.send(b"here %d" % number)
        other.send(b"there %d" % number)
    assert own.bodies == [b"here 0"]
    assert (near.held, broker.entry("one/a").held) == (3, 2)
    own.flow(2)
    own.flow(3)
    assert sorted(own.bodies) == sorted(
        b"%s %d" % (word, number) for word in (b"here", b"there") for number in range(3)
    )
    for word in (b"here", b"there"):
        assert [each for each in own.bodies if each.startswith(word)] == [
            b"%s %d" % (word, number) for number in range(3)
        ]
    own.accept_all()
    broker.assert_clean()


def test_neither_kind_of_sender_starves_while_both_go_on(broker: Broker) -> None:
    near_of(broker, "one/a")
    own = consumer(broker, "one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    other = broker.peer().publisher("near/one/a")
    for _ in range(20):
        publisher.send(b"here")
        other.send(b"there")
    for _ in range(20):
        own.accept_all()
        own.flow(1)
    counts = [own.bodies.count(b"here"), own.bodies.count(b"there")]
    assert sum(counts) == 21
    assert min(counts) > 5, counts


def test_what_is_held_from_elsewhere_is_released_when_the_last_consumer_goes(
    broker: Broker,
) -> None:
    near_of(broker, "one/a")
    own, away = consumer(broker, "one/a", credit=1), consumer(broker, "one/a", 1, credit=0)
    other = broker.peer().publisher("near/one/a")
    first, second = other.send(), other.send()
    own.accept()
    own.detach()
    assert other.outcomes == {first: Accepted(), second: Released()}
    assert other.credit == 0
    away.flow(10)
    assert away.bodies == []
    broker.assert_clean()


def test_big_messages_from_elsewhere_cut_through(broker: Broker) -> None:
    near_of(broker, "least/a", BALANCED_CODE)
    own = consumer(broker, "least/a", credit=1)
    other = broker.peer().publisher("near/least/a")
    body = b"x" * 150_000
    one, two = other.send(body, pieces=4), other.send(body, pieces=4)
    assert own.bodies == [body]
    own.accept()
    own.flow(1)
    assert own.bodies == [body, body]
    own.accept()
    assert other.outcomes == {one: Accepted(), two: Accepted()}
    broker.assert_clean()


def test_a_near_entry_that_closes_leaves_the_consumers_to_the_outer_one(broker: Broker) -> None:
    near = near_of(broker, "one/a")
    own = consumer(broker, "one/a", credit=0)
    broker.entry("one/a").near = None
    near.close()
    del broker.space.entries[b"near/one/a"]
    publisher = broker.peer().publisher("one/a")
    own.flow(5)
    sent = publisher.send(b"still")
    own.accept()
    assert publisher.outcomes == {sent: Accepted()}
    near_of(broker, "one/a")
    other = broker.peer().publisher("near/one/a")
    other.send(b"again")
    assert own.bodies == [b"still", b"again"]

"""Credit: who may send how much, and how it is used up (AMQP 1.0 §2.6.7)."""

import pytest
from wires import Broker

from cogwork.amqp.errors import Condition
from cogwork.amqp.outcomes import Accepted, Released

AHEAD = 32
"""What a publisher may send beyond the consumers' credit."""


def test_a_publisher_gets_credit_when_the_first_consumer_gives_some(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    assert publisher.credit == 0
    consumer = broker.peer().consumer("one/a")
    assert publisher.credit == 0, "attached, but it has given no credit"
    consumer.flow(broker.window)
    assert publisher.credit == broker.window


def test_a_publisher_gets_no_more_credit_than_the_consumers_gave(broker: Broker) -> None:
    first = broker.peer().consumer("one/a", credit=20)
    broker.peer().consumer("one/a", credit=30)
    publisher = broker.peer().publisher("one/a")
    assert publisher.credit == 50
    first.flow(70)
    assert publisher.credit == 100
    first.flow(1000)
    assert publisher.credit == broker.window


def test_publishers_may_be_a_little_ahead_of_consumers_with_little_credit(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=1)
    publishers = [broker.peer().publisher("one/a") for _ in range(3)]
    assert [publisher.credit for publisher in publishers] == [AHEAD, AHEAD, AHEAD]
    for _ in range(AHEAD):
        publishers[0].send()
    assert publishers[0].credit == 0, "what it sent is held: it must not get further ahead"
    consumer.flow(1000)
    consumer.accept_all()
    assert all(publisher.credit > broker.window // 2 for publisher in publishers)


def test_no_publisher_of_many_is_left_without_credit(broker: Broker) -> None:
    """Credit is passed on to a few at a time, to each in its turn."""
    consumer = broker.peer().consumer("one/a", credit=1)
    publishers = [broker.peer().publisher("one/a") for _ in range(50)]
    for publisher in publishers:
        while publisher.credit:
            publisher.send(settled=True)
    for _ in range(4):
        consumer.flow(10_000)
    assert broker.entry("one/a").held == 0
    assert all(publisher.credit > broker.window // 2 for publisher in publishers)


def test_a_node_that_takes_all_leaves_credit_to_the_window(broker: Broker) -> None:
    broker.peer().consumer("whole/a", credit=1)
    assert broker.peer().publisher("whole/a").credit == broker.window


def test_a_multicast_publisher_always_has_credit(broker: Broker) -> None:
    assert broker.peer().publisher("all/a").credit == broker.window


def test_credit_is_taken_back_when_the_last_consumer_goes(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    consumer.detach()
    assert publisher.credit == 0


def test_what_was_on_its_way_when_credit_was_taken_back_is_released(broker: Broker) -> None:
    """A sender cannot know yet that its credit has gone: those transfers are no fault of its."""
    sender = broker.peer()
    publisher = sender.publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    sender.is_deaf = True
    consumer.detach()
    first = publisher.send()
    last = publisher.send(settled=True)
    sender.is_deaf = False
    broker.settle_down()
    assert publisher.detached is None
    assert publisher.outcomes == {first: Released()}
    assert last == first + 1
    broker.assert_clean()


def test_credit_taken_back_and_given_again_is_not_given_twice(broker: Broker) -> None:
    sender = broker.peer()
    publisher = sender.publisher("one/a")
    for _ in range(3):
        broker.peer().consumer("one/a", credit=5).detach()
    broker.peer().consumer("one/a", credit=5)
    for _ in range(AHEAD):
        publisher.send(settled=True)
    assert publisher.detached is None


def test_a_transfer_beyond_the_credit_detaches_the_link(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    publisher.send()
    assert publisher.detached is not None
    assert publisher.detached.error is not None
    assert publisher.detached.error.condition == Condition.LINK_TRANSFER_LIMIT_EXCEEDED


def test_the_last_credit_may_be_used_and_no_more(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    broker.peer().consumer("one/a", credit=broker.window)
    for _ in range(broker.window):
        publisher.send()
    assert publisher.detached is None
    assert publisher.credit == 0
    publisher.send()
    assert publisher.detached is not None


def test_credit_is_topped_up_as_deliveries_are_settled(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=1000)
    for _ in range(80):
        publisher.send()
    assert publisher.credit == broker.window - 80
    consumer.accept_all()
    assert publisher.credit > broker.window // 2


def test_a_consumer_gets_no_more_than_its_credit(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=3)
    for number in range(5):
        publisher.send(b"%d" % number)
    assert consumer.bodies == [b"0", b"1", b"2"]
    consumer.flow(1)
    assert consumer.bodies == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("credit", [2**31 - 1, 2**31, 2**32 - 1])
def test_any_credit_that_fits_a_uint_counts(broker: Broker, credit: int) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=credit)
    publisher.send(b"one")
    publisher.send(b"two")
    assert consumer.bodies == [b"one", b"two"]


def test_credit_is_counted_from_what_the_receiver_had_seen(broker: Broker) -> None:
    """The flow crossed two transfers on the wire: they come off the credit (§2.6.7)."""
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=2)
    publisher.send()
    publisher.send()
    consumer.delivery_count = 0
    consumer.flow(3)
    for _ in range(5):
        publisher.send()
    assert len(consumer.arrivals) == 3


def test_a_flow_without_delivery_count_starts_from_the_first_delivery(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a")
    consumer.channel.flow(handle=consumer.handle, link_credit=1)
    publisher.send()
    publisher.send()
    assert len(consumer.arrivals) == 1


def test_drain_without_anything_to_send_uses_the_credit_up_at_once(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a")
    consumer.flow(10, drain=True)
    assert [(f.delivery_count, f.link_credit, f.drain) for f in consumer.flows] == [(10, 0, True)]


def test_drain_delivers_all_that_is_held_first(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=1)
    for number in range(6):
        publisher.send(b"%d" % number)
    consumer.accept()
    consumer.flow(20, drain=True)
    assert consumer.bodies == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert consumer.flows[-1].delivery_count == 21
    assert consumer.flows[-1].link_credit == 0
    consumer.accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())


def test_drain_with_less_credit_than_is_held_needs_no_more_than_the_credit(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=1)
    for _ in range(6):
        publisher.send()
    consumer.flow(2, drain=True)
    assert len(consumer.arrivals) == 3
    assert consumer.flows[-1].link_credit == 0
    assert consumer.flows[-1].delivery_count == 3


def test_a_drain_with_less_credit_than_waits_at_the_link_itself_is_answered(broker: Broker) -> None:
    consumer = broker.peer().consumer("all/a", credit=1)
    publisher = broker.peer().publisher("all/a")
    for _ in range(6):
        publisher.send()
    consumer.flow(2, drain=True)
    assert len(consumer.arrivals) == 3
    assert (consumer.flows[-1].link_credit, consumer.flows[-1].delivery_count) == (0, 3)
    consumer.flow(3)
    assert len(consumer.arrivals) == 6


def test_after_a_drain_new_credit_works_as_before(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a")
    consumer.flow(10, drain=True)
    consumer.flow(1)
    publisher.send(b"after")
    assert consumer.bodies == [b"after"]


def test_drain_of_a_consumer_in_the_middle_of_a_large_delivery_waits_for_its_end(
    broker: Broker,
) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher.start(b"begin")
    consumer.flow(4, drain=True)
    assert consumer.flows == []
    publisher.more(b"end", more=False)
    assert consumer.bodies == [b"beginend"]
    assert consumer.flows[-1].link_credit == 0


def test_a_session_flow_with_echo_is_answered(broker: Broker) -> None:
    peer = broker.peer()
    peer.main.flow(echo=True)
    assert peer.main.window is not None


def test_a_link_flow_with_echo_is_answered_by_either_end(broker: Broker) -> None:
    peer = broker.peer()
    consumer = peer.consumer("one/a")
    consumer.flow(7, echo=True)
    assert consumer.flows[-1].link_credit == 7
    publisher = peer.publisher("one/a")
    before = len(publisher.flows)
    peer.main.flow(handle=publisher.handle, delivery_count=0, link_credit=0, echo=True)
    assert len(publisher.flows) == before + 1


def test_no_flow_goes_before_an_attach_that_is_put_off(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a")
    (end,) = broker.links.values()
    end.owner.put_off(list)
    before = len(consumer.flows)
    consumer.flow(7, echo=True)
    assert (end.credit, len(consumer.flows)) == (7, before)
    end.owner.answer()
    consumer.flow(8, echo=True)
    assert consumer.flows[-1].link_credit == 8


def test_a_huge_window_is_granted_and_topped_up() -> None:
    """A quarter of 2**31 - 1 and four times it must not wrap."""
    broker = Broker(window=2**31 - 1)
    publisher = broker.peer().publisher("all/a")
    assert publisher.credit == 2**31 - 1


@pytest.mark.parametrize("start", [1, 1000, 2**31, 2**32 - 3])
def test_a_publisher_may_start_to_count_anywhere(start: int) -> None:
    """Credit is told from the sender's own count, which wraps (§2.6.7, §2.8.10)."""
    broker = Broker(window=20)
    consumer = broker.peer().consumer("one/a", credit=1000)
    publisher = broker.peer().publisher("one/a", delivery_count=start)
    assert publisher.credit == 20
    for _ in range(20):
        publisher.send(b"x" * 100)
    assert publisher.credit == 0
    consumer.accept_all()
    assert 10 < publisher.credit <= 20
    assert publisher.flows[-1].delivery_count == (start + 20) % 2**32
    assert publisher.detached is None


@pytest.mark.parametrize("address", ["one/a", "least/a"])
@pytest.mark.parametrize("unsettled", [50, 60, 90, 99])
def test_receivers_with_credit_get_more_while_half_of_the_window_is_unsettled(
    broker: Broker, address: str, unsettled: int
) -> None:
    hoarder = broker.peer().consumer(address, credit=unsettled)
    publisher = broker.peer().publisher(address)
    for _ in range(unsettled):
        publisher.send()
    assert len(hoarder.arrivals) == unsettled
    while publisher.credit:
        publisher.send()
    quick = broker.peer().consumer(address, credit=1000)
    taken = len(quick.arrivals)
    quick.accept_all()
    for _ in range(500):
        assert publisher.credit, f"no credit after {len(quick.arrivals)}"
        publisher.send()
        quick.accept_all()
    assert len(quick.arrivals) == taken + 500
    assert publisher.end.unsettled + publisher.credit <= broker.window


def test_a_sender_of_few_at_a_time_is_told_so_in_steps(broker: Broker) -> None:
    """A flow for each message would cost as much as the message."""
    broker.peer().consumer("one/a", credit=50)
    publisher = broker.peer().publisher("one/a")
    for _ in range(50):
        publisher.send()
    quick = broker.peer().consumer("one/a", credit=10_000)
    before = len(publisher.flows)
    for _ in range(200):
        publisher.send()
        quick.accept_all()
    assert len(publisher.flows) - before <= 20

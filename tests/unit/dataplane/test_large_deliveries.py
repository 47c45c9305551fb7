"""Deliveries of several transfers: cut through frame by frame (AMQP 1.0 §2.6.14)."""

import pytest
from wires import DROP_OLDEST, Broker

from cogwork.amqp.errors import Condition
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released

KIB = 1024


@pytest.mark.parametrize("size", [0, 1, 415, 416, 417, 512, 4 * KIB, 300 * KIB])
@pytest.mark.parametrize("address", ["one/a", "all/a"])
@pytest.mark.parametrize("settled", [False, True])
def test_any_size_fits_small_frames(address: str, size: int, settled: bool) -> None:
    broker = Broker()
    consumer = broker.peer(max_frame_size=512).consumer(address, credit=5)
    publisher = broker.peer().publisher(address)
    body = bytes(number % 251 for number in range(size))
    publisher.send(body, settled=settled, pieces=1 + size // (60 * KIB))
    publisher.send(body, settled=settled, pieces=7)
    assert consumer.bodies == [body, body]
    assert [arrival.settled for arrival in consumer.arrivals] == [settled, settled]
    consumer.accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


def test_what_has_arrived_is_passed_on_before_the_rest_is_there(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher = broker.peer().publisher("one/a")
    publisher.start(b"begin ")
    assert consumer.last.body == b"begin "
    assert not consumer.last.complete
    publisher.more(b"end", more=False)
    assert consumer.bodies == [b"begin end"]
    assert broker.core.held_bytes == 0


def test_a_large_delivery_waits_for_a_consumer_with_credit(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"first")
    publisher.start(b"large ")
    consumer.flow(1)
    publisher.more(b"rest", more=False)
    assert consumer.bodies == [b"first", b"large rest"]
    consumer.accept_all()
    broker.assert_clean()


@pytest.mark.parametrize("address", ["one/a", "all/a"])
def test_frames_without_octets_in_the_middle_are_nothing(broker: Broker, address: str) -> None:
    consumer = broker.peer().consumer(address, credit=5)
    publisher = broker.peer().publisher(address)
    publisher.start(b"begin ")
    for _ in range(100):
        publisher.more(b"")
    publisher.more(b"end ")
    publisher.more(b"", more=False)
    assert consumer.bodies == [b"begin end "]
    consumer.accept_all()
    broker.assert_clean()


@pytest.mark.parametrize("address", ["one/a", "all/a"])
def test_frames_without_octets_at_the_beginning_take_no_memory(
    broker: Broker, address: str
) -> None:
    consumer = broker.peer().consumer(address, credit=1)
    publisher = broker.peer().publisher(address)
    publisher.start(b"")
    for _ in range(100):
        publisher.more(b"")
    assert broker.core.held_deliveries == 0
    publisher.more(b"all", more=False)
    assert consumer.bodies == [b"all"]
    consumer.accept_all()
    broker.assert_clean()


def test_links_of_one_session_may_interleave_their_deliveries(broker: Broker) -> None:
    peer = broker.peer()
    one, two = peer.publisher("one/a"), peer.publisher("one/b")
    receiver = broker.peer()
    first, second = receiver.consumer("one/a", credit=5), receiver.consumer("one/b", credit=5)
    one.start(b"a1")
    two.start(b"b1")
    one.more(b"a2", more=False)
    two.more(b"b2", more=False)
    assert first.bodies == [b"a1a2"]
    assert second.bodies == [b"b1b2"]


def test_publishers_to_one_consumer_do_not_mix_their_frames(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=5)
    one, two = broker.peer().publisher("one/a"), broker.peer().publisher("one/a")
    one.start(b"a1")
    two.send(b"whole")
    two.start(b"b1")
    one.more(b"a2", more=False)
    two.more(b"b2", more=False)
    assert consumer.bodies == [b"a1a2", b"whole", b"b1b2"]
    consumer.accept_all()
    broker.assert_clean()


def named(address: bytes, body: bytes) -> bytes:
    """Return a message that says where it goes, as for a link that leads nowhere by itself."""
    fields = b"\x03\x40\x40\xa1" + bytes([len(address)]) + address
    properties = b"\x00\x53\x73\xc0" + bytes([len(fields)]) + fields
    return properties + b"\x00\x53\x75\xa0" + bytes([len(body)]) + body


@pytest.mark.parametrize("first", [0, 1, 3, 6, 12, 16, 40])
@pytest.mark.parametrize("settled", [False, True])
def test_where_a_message_goes_may_be_in_any_of_its_transfers(first: int, settled: bool) -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher = broker.peer().publisher(None)
    message = named(b"one/a", b"x" * 50)
    publisher.start(message[:first], settled=settled)
    for at in range(first, len(message) - 1):
        publisher.more(message[at : at + 1])
    publisher.more(message[-1:], more=False)
    assert consumer.bodies == [message]
    consumer.accept_all()
    assert list(publisher.outcomes.values()) == [Accepted()] * (not settled)
    broker.assert_clean()


@pytest.mark.parametrize("end", ["abort", "detach", "nowhere", "says nothing"])
def test_a_message_that_never_says_where_it_goes_leaves_nothing(end: str) -> None:
    broker = Broker()
    publisher = broker.peer().publisher(None)
    message = b"\x00\x53\x75\xa0\x01x" if end == "says nothing" else named(b"nowhere/a", b"x")
    publisher.start(message[:4])
    if end == "abort":
        publisher.more(aborted=True)
    elif end == "detach":
        publisher.detach()
    else:
        publisher.more(message[4:], more=False)
        assert list(publisher.outcomes.values()) == [Released()]
    broker.assert_clean()
    assert broker.core.held_bytes == 0


# -- aborted, and lost in the middle


@pytest.mark.parametrize("address", ["one/a", "all/a"])
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("how", ["abort", "detach", "vanish"])
def test_a_delivery_given_up_is_aborted_at_the_consumer(
    address: str, settled: bool, how: str
) -> None:
    broker = Broker()
    consumer = broker.peer().consumer(address, credit=5)
    publisher = broker.peer().publisher(address)
    publisher.start(b"begin", settled=settled)
    sender_end, receiver_end = publisher.end, consumer.end
    if how == "vanish":
        publisher.channel.peer.vanish()
    else:
        getattr(publisher, how)()
    assert consumer.last.aborted
    assert consumer.bodies == []
    assert publisher.outcomes == {}, "an aborted delivery is settled (§2.7.5)"
    assert receiver_end.unsettled == 0
    assert consumer.channel.peer.connection.sessions[0].end.unsettled == 0
    assert sender_end.unsettled == 0
    broker.assert_clean()
    broker.peer().publisher(address).send(b"next")
    assert consumer.bodies == [b"next"]


def test_only_the_aborted_delivery_is_forgotten(broker: Broker) -> None:
    """The consumer's session has sent another delivery since the one that is aborted began."""
    receiver = broker.peer()
    large, small = receiver.consumer("one/a", credit=5), receiver.consumer("one/b", credit=5)
    publisher = broker.peer().publisher("one/a")
    other = broker.peer().publisher("one/b")
    publisher.start(b"begin")
    other.send(b"complete")
    publisher.abort()
    small.accept()
    assert other.outcomes == {0: Accepted()}
    assert large.end.unsettled == 0
    assert small.end.unsettled == 0
    broker.assert_clean()


def test_an_aborted_delivery_that_was_held_is_forgotten_at_once(broker: Broker) -> None:
    broker.peer().consumer("one/a")
    broker.peer().consumer("one/a", credit=1).flow(0)
    publisher = broker.peer().publisher("one/a")
    for settled in (False, True):
        publisher.start(b"begin", settled=settled)
        assert broker.entry("one/a").held == 1
        publisher.abort()
        assert broker.entry("one/a").held == 0
    assert publisher.end.unsettled == 0
    assert publisher.end.charged == 0
    broker.assert_clean()


def test_an_aborted_delivery_that_waits_in_a_queue_is_forgotten(broker: Broker) -> None:
    slow = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    publisher.send(b"first")
    publisher.start(b"begin")
    publisher.abort()
    slow.flow(5)
    assert slow.bodies == [b"first"]
    assert len(slow.arrivals) == 1
    slow.accept_all()
    broker.assert_clean()


def test_aborting_keeps_to_the_consumers_window(broker: Broker) -> None:
    receiver = broker.peer(incoming_window=1)
    consumer = receiver.consumer("one/a", credit=5)
    publisher = broker.peer().publisher("one/a")
    publisher.start(b"begin")
    publisher.abort()
    assert consumer.last.frames == 1
    receiver.main.flow()
    assert consumer.last.aborted
    broker.assert_clean()


def test_a_first_transfer_that_is_aborted_counts_and_is_dropped(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher = broker.peer().publisher("one/a")
    publisher.start(b"begin", more=False, aborted=True)
    publisher.send(b"next")
    assert consumer.bodies == [b"next"]
    assert publisher.end.unsettled == 1


# -- the consumer's side goes in the middle


@pytest.mark.parametrize("presettled", [False, True])
@pytest.mark.parametrize("end", ["finish", "abort"])
def test_the_consumer_goes_in_the_middle(presettled: bool, end: str) -> None:
    broker = Broker()
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5, presettled=presettled)
    broker.peer().consumer("one/a")
    delivery = publisher.start(b"begin")
    consumer.detach()
    if end == "finish":
        publisher.more(b"end", more=False)
    else:
        publisher.abort()
    assert publisher.outcomes in ({}, {delivery: Modified(delivery_failed=True)})
    assert publisher.outcomes or end == "abort"
    assert publisher.end.unsettled == 0
    broker.assert_clean()
    last = broker.peer().consumer("one/a", credit=1)
    publisher.send(b"next")
    assert last.bodies == [b"next"]


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_the_consumer_settles_before_the_delivery_is_complete(end: str) -> None:
    broker = Broker()
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    delivery = publisher.start(b"begin")
    consumer.settle(Rejected())
    assert publisher.outcomes == {delivery: Rejected()}
    if end == "finish":
        publisher.more(b"end", more=False)
    else:
        publisher.abort()
    assert publisher.answers == {delivery: 1}
    assert publisher.end.unsettled == 0
    assert publisher.credit > 0
    broker.assert_clean()


@pytest.mark.parametrize("presettled", [False, True])
def test_one_of_two_slow_subscribers_goes_in_the_middle(presettled: bool) -> None:
    """Both have chunks of one delivery to send; what one gives up the other still needs."""
    broker = Broker()
    first = broker.peer(incoming_window=2).consumer("all/a", credit=5, presettled=presettled)
    second_peer = broker.peer(incoming_window=1)
    second = second_peer.consumer("all/a", credit=5)
    publisher = broker.peer().publisher("all/a")
    for number in range(4):
        publisher.start(b"0") if number == 0 else publisher.more(b"%d" % number)
    first.detach()
    publisher.more(b"4", more=False)
    for _ in range(8):
        second_peer.main.flow()
    assert second.bodies == [b"01234"]
    second.accept()
    assert publisher.outcomes == {0: Accepted()}
    broker.assert_clean()


def test_an_overdue_subscriber_keeps_its_place_until_it_is_detached(broker: Broker) -> None:
    """It is past its limit, and another waits too: chunks must outlive both."""
    broker.backlog_bytes_max = 10
    peers = [broker.peer(incoming_window=1) for _ in range(2)]
    one, two = (peer.consumer("all/a", credit=9) for peer in peers)
    publisher = broker.peer().publisher("all/a")
    publisher.send(b"fills the window")
    publisher.send(b"fills the backlog")
    publisher.start(b"0")
    publisher.more(b"1")
    assert one.end in broker.core.overdue
    publisher.more(b"2")
    for _ in range(4):
        peers[0].main.flow()
    publisher.more(b"3", more=False)
    for _ in range(8):
        peers[0].main.flow()
        peers[1].main.flow()
    assert one.bodies[-1] == two.bodies[-1] == b"0123"
    one.accept_all()
    two.accept_all()
    broker.assert_clean()


def test_drop_oldest_may_drop_a_delivery_that_is_still_arriving(broker: Broker) -> None:
    broker.policy = DROP_OLDEST
    broker.backlog_bytes_max = 20
    slow = broker.peer().consumer("all/a")
    fast = broker.peer().consumer("all/a", credit=9)
    one, two = broker.peer().publisher("all/a"), broker.peer().publisher("all/a")
    one.start(b"0123456789")
    two.send(b"another one")
    one.more(b"end", more=False)
    slow.flow(9)
    assert slow.bodies == [b"another one"]
    assert sorted(fast.bodies) == [b"0123456789end", b"another one"]
    slow.accept_all()
    fast.accept_all()
    assert slow.end.backlog_bytes == 0
    broker.assert_clean()


def test_the_last_consumer_goes_while_a_large_delivery_is_held(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher.send(b"first")
    consumer.accept()
    delivery = publisher.start(b"held")
    consumer.detach()
    publisher.more(b"end", more=False)
    assert publisher.outcomes[delivery] == Released()
    assert publisher.end.unsettled == 0
    broker.assert_clean()


def test_settled_may_be_said_later_than_in_the_first_transfer(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher.start(b"begin")
    publisher.more(b"end", more=False, settled=True)
    consumer.accept_all()
    publisher.start(b"begin")
    publisher.more(b"middle", settled=True)
    publisher.abort()
    assert publisher.end.unsettled == 0
    nobody = broker.peer().publisher("all/b")
    nobody.start(b"begin")
    nobody.more(b"end", more=False, settled=True)
    assert nobody.end.unsettled == 0
    broker.assert_clean()


def test_a_received_state_in_the_middle_changes_nothing(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher.start(b"begin")
    consumer.settle(Received(section_number=0, section_offset=5), settled=False)
    publisher.more(b"end", more=False)
    consumer.accept()
    assert publisher.outcomes == {0: Accepted()}


# -- assembled for a node


def test_a_node_gets_whole_messages(broker: Broker) -> None:
    publisher = broker.peer().publisher("whole/a")
    publisher.send(b"0123456789", pieces=5)
    message, token, source, settled = broker.taken[0]
    assert (message, settled) == (b"0123456789", False)
    assert source is not None
    source.settle(token, 0x24)
    broker.settle_down()
    assert publisher.outcomes == {0: Accepted()}
    broker.assert_clean()


def test_a_message_larger_than_the_held_bytes_of_a_session_can_be_assembled(
    broker: Broker,
) -> None:
    """The session's window must not close on the very delivery that it waits for."""
    publisher = broker.peer(session_window_frames=64).publisher("whole/a")
    piece = b"x" * 60 * KIB
    publisher.start(piece)
    for _ in range(300):
        publisher.more(piece)
    publisher.more(b"", more=False)
    assert [len(message) for message, _, _, _ in broker.taken] == [301 * 60 * KIB]


def test_assembling_more_than_there_is_room_for_ends_the_link_not_the_others(
    broker: Broker,
) -> None:
    broker.core.held_bytes_max = 100 * KIB
    consumer = broker.peer().consumer("one/b", credit=1000)
    bystander = broker.peer(session_window_frames=4).publisher("one/b")
    publisher = broker.peer().publisher("whole/a")
    publisher.start(b"x" * 60 * KIB)
    publisher.more(b"x" * 60 * KIB)
    assert publisher.detached is not None
    assert publisher.detached.error is not None
    assert publisher.detached.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED
    for _ in range(20):
        bystander.send(settled=True)
    assert len(consumer.arrivals) == 20
    broker.assert_clean()


@pytest.mark.parametrize("how", ["abort", "detach", "vanish"])
def test_a_message_given_up_while_it_is_assembled_leaves_nothing(how: str) -> None:
    broker = Broker()
    publisher = broker.peer().publisher("whole/a")
    publisher.start(b"begin")
    publisher.channel.peer.vanish() if how == "vanish" else getattr(publisher, how)()
    assert broker.taken == []
    broker.assert_clean()


# -- limits


@pytest.mark.parametrize("pieces", [1, 2, 10])
def test_a_message_above_the_limit_detaches_its_link(pieces: int) -> None:
    broker = Broker(max_message_size=1000)
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"x" * 1000, pieces=pieces)
    publisher.send(b"x" * 1001, pieces=pieces)
    assert publisher.detached is not None
    assert publisher.detached.error is not None
    assert publisher.detached.error.condition == Condition.LINK_MESSAGE_SIZE_EXCEEDED
    assert consumer.bodies == [b"x" * 1000]
    consumer.accept_all()
    broker.assert_clean()

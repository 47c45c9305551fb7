"""Session windows: honoured towards consumers, enforced against publishers (AMQP 1.0 §2.5.6)."""

from wires import Broker, frame

from cogwork.amqp.errors import Condition
from cogwork.amqp.performatives import Transfer
from cogwork.dataplane.transport.session_end import Session


def test_no_more_transfers_than_the_consumers_window(broker: Broker) -> None:
    receiver = broker.peer(incoming_window=3)
    consumer = receiver.consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    for _ in range(10):
        publisher.send()
    assert len(consumer.arrivals) == 3
    receiver.main.flow()
    assert len(consumer.arrivals) == 6
    receiver.main.flow()
    receiver.main.flow()
    assert len(consumer.arrivals) == 10


def test_the_window_counts_frames_not_deliveries(broker: Broker) -> None:
    receiver = broker.peer(incoming_window=3, max_frame_size=512)
    consumer = receiver.consumer("one/a", credit=100)
    broker.peer().publisher("one/a").send(b"x" * 2000)
    assert consumer.last.frames == 3
    assert not consumer.last.complete
    receiver.main.flow()
    assert consumer.bodies == [b"x" * 2000]


def test_a_window_is_shared_by_the_sessions_links(broker: Broker) -> None:
    receiver = broker.peer(incoming_window=2)
    consumers = [receiver.consumer(f"one/{name}", credit=9) for name in "abc"]
    publishers = [broker.peer().publisher(f"one/{name}") for name in "abc"]
    for publisher in publishers:
        publisher.send()
    assert [len(c.arrivals) for c in consumers] == [1, 1, 0]
    receiver.main.flow()
    assert [len(c.arrivals) for c in consumers] == [1, 1, 1]


def test_a_stale_flow_takes_what_is_on_its_way_off_the_window(broker: Broker) -> None:
    """remote-incoming-window = next-incoming-id + incoming-window - next-outgoing-id (§2.5.6)."""
    receiver = broker.peer(incoming_window=4)
    consumer = receiver.consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    for _ in range(3):
        publisher.send()
    receiver.main.flow(next_incoming_id=1)
    for _ in range(9):
        publisher.send()
    assert len(consumer.arrivals) == 5


def test_a_flow_from_before_the_first_transfer_counts_from_the_start(broker: Broker) -> None:
    receiver = broker.peer(incoming_window=4)
    consumer = receiver.consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    publisher.send()
    receiver.main.flow(next_incoming_id=None)
    for _ in range(9):
        publisher.send()
    assert len(consumer.arrivals) == 4


def test_a_nonsense_next_incoming_id_stops_only_its_own_session(broker: Broker) -> None:
    receiver = broker.peer(incoming_window=4)
    consumer = receiver.consumer("one/a", credit=100)
    receiver.main.flow(next_incoming_id=2**31)
    other = broker.peer().consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    for _ in range(3):
        publisher.send()
    assert len(other.arrivals) == 3
    assert len(consumer.arrivals) == 0


def test_the_publishers_window_is_opened_again_by_halves(broker: Broker) -> None:
    broker.peer().consumer("one/a", credit=100_000)
    sender = broker.peer(session_window_frames=10)
    publisher = sender.publisher("one/a")
    for _ in range(60):
        publisher.send(settled=True)
    assert sender.main.ended is None
    assert sender.main.window == 10


def test_a_transfer_beyond_the_window_ends_the_session(broker: Broker) -> None:
    broker.peer().consumer("one/a", credit=100_000)
    sender = broker.peer(session_window_frames=10)
    publisher = sender.publisher("one/a")
    sender.feed(
        b"".join(
            frame(Transfer(handle=0, delivery_id=n, delivery_tag=b"%d" % n, settled=True), b"x")
            for n in range(11)
        )
    )
    assert sender.main.ended is not None
    assert sender.main.ended.error is not None
    assert sender.main.ended.error.condition == Condition.SESSION_WINDOW_VIOLATION
    assert publisher.detached is None
    assert not sender.finished, "the connection goes on"
    sender.begin(1).publisher("one/a").send()


def test_bytes_held_for_a_session_close_its_window(broker: Broker) -> None:
    """A large delivery that nobody takes may not fill the memory."""
    broker.peer().consumer("one/a")
    broker.peer().consumer("one/a", credit=1).flow(0)
    sender = broker.peer(session_window_frames=100)
    publisher = sender.publisher("one/a")
    piece = b"x" * 60 * 1024
    publisher.start(piece)
    sent = 1
    session = sender.wire.session_on(0)
    assert isinstance(session, Session)
    while sender.main.ended is None and sent < 1000 and session.incoming_window:
        publisher.more(piece)
        sent += 1
    assert sent < 400
    taker = broker.peer().consumer("one/a", credit=1)
    publisher.more(b"", more=False)
    assert len(taker.bodies) == 1
    taker.accept()
    broker.assert_clean()


def test_what_a_detached_publisher_left_behind_does_not_close_its_sessions_window(
    broker: Broker,
) -> None:
    consumer = broker.peer().consumer("one/a", credit=40)
    sender = broker.peer(session_window_frames=20)
    publishers = [sender.publisher("one/a") for _ in range(5)]
    consumer.flow(0)
    for publisher in publishers:
        for _ in range(40):
            publisher.send(b"x" * 60_000, settled=True)
        publisher.detach()
    assert broker.core.held_bytes > 8 << 20
    last = sender.publisher("all/b")
    for _ in range(60):
        last.send(settled=True)
    assert sender.main.ended is None
    consumer.flow(1000)
    assert len(consumer.arrivals) == 200
    broker.assert_clean()


def test_only_sessions_that_hold_something_stop_when_memory_is_short(broker: Broker) -> None:
    broker.core.held_bytes_max = 1000
    broker.peer().consumer("one/full")
    broker.peer().consumer("one/full", credit=1).flow(0)
    broker.peer().publisher("one/full").send(b"x" * 2000)
    consumer = broker.peer().consumer("one/free", credit=1000)
    publisher = broker.peer(session_window_frames=10).publisher("one/free")
    for _ in range(50):
        publisher.send(settled=True)
    assert len(consumer.arrivals) == 50

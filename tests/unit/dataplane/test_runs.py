"""Many messages in one read: routed as a run, with the same result as one by one."""

import pytest
from wires import BLOCK, DETACH, DROP_OLDEST, Broker, frame

from cogwork.amqp.errors import Condition
from cogwork.amqp.outcomes import Accepted, Rejected
from cogwork.amqp.performatives import Transfer

BODY = b"x" * 80


def bodies(*sizes: int) -> list[bytes]:
    return [b"%04d" % number + b"x" * size for number, size in enumerate(sizes)]


@pytest.mark.parametrize("address", ["one/a", "all/a"])
@pytest.mark.parametrize("settled", [True, False])
def test_sizes_beyond_the_consumers_frames_may_be_mixed_in(address: str, settled: bool) -> None:
    broker = Broker(window=1000)
    consumers = [
        broker.peer(max_frame_size=512).consumer(address, credit=500),
        broker.peer().consumer(address, credit=500, presettled=True),
    ]
    if address == "one/a":
        consumers[1].detach()
    publisher = broker.peer().publisher(address)
    sent = bodies(80, 80, 2000, 80, 412, 413, 80, 5000, 5000, 80)
    publisher.send_at_once(sent, settled=settled)
    assert consumers[0].bodies == sent
    if address == "all/a":
        assert consumers[1].bodies == sent
    consumers[0].accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


@pytest.mark.parametrize("address", ["one/a", "all/a", "whole/a"])
def test_a_run_ends_where_the_consumers_credit_does(address: str) -> None:
    broker = Broker(window=1000)
    consumer = broker.peer().consumer(address, credit=1000)
    publisher = broker.peer().publisher(address)
    consumer.flow(3)
    sent = bodies(*[80] * 200)
    publisher.send_at_once(sent)
    if address == "whole/a":
        assert sorted([m for m, _, _, _ in broker.taken] + consumer.bodies) == sent
        return
    assert consumer.bodies == sent[:3]
    consumer.flow(1000)
    assert consumer.bodies == sent
    consumer.accept_all()
    assert publisher.answers == dict.fromkeys(publisher.sent, 1)
    broker.assert_clean()


@pytest.mark.parametrize("policy", [BLOCK, DROP_OLDEST, DETACH])
def test_a_run_meets_subscribers_of_every_speed(policy: int) -> None:
    broker = Broker(window=1000)
    broker.policy = policy
    broker.backlog_bytes_max = 3000
    fast = broker.peer().consumer("all/a", credit=500)
    slow = broker.peer(incoming_window=10).consumer("all/a", credit=500)
    stopped = broker.peer().consumer("all/a")
    publisher = broker.peer().publisher("all/a")
    sent = bodies(*[80] * 100)
    publisher.send_at_once(sent)
    assert fast.bodies == sent
    assert slow.bodies == sent[:10]
    for overdue in broker.core.overdue:
        overdue.owner.detach()
    broker.settle_down()
    for _ in range(12):
        slow.channel.flow()
    assert slow.bodies == sorted(set(slow.bodies))
    stopped.detach()
    fast.accept_all()
    slow.accept_all()
    assert publisher.answers == dict.fromkeys(publisher.sent, 1)
    broker.assert_clean()


def test_a_run_beyond_the_credit_is_taken_up_to_it(broker: Broker) -> None:
    consumer = broker.peer().consumer("one/a", credit=1000)
    publisher = broker.peer().publisher("one/a")
    publisher.send_at_once(bodies(*[80] * (broker.window + 5)))
    assert len(consumer.bodies) == broker.window
    assert publisher.detached is not None
    assert publisher.detached.error is not None
    assert publisher.detached.error.condition == Condition.LINK_TRANSFER_LIMIT_EXCEEDED


def test_a_run_settled_as_a_whole_takes_the_delivery_under_way_with_it(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher.send_at_once([BODY, BODY])
    publisher.start(BODY)
    consumer.channel.settle(0, 2, Rejected())
    publisher.abort()
    assert publisher.answers == {0: 1, 1: 1, 2: 1}
    assert publisher.end.unsettled == 0
    broker.assert_clean()


@pytest.mark.parametrize("size", [8, 9, 10, 11, 12, 80])
def test_the_last_frame_of_a_read_may_be_of_any_size(broker: Broker, size: int) -> None:
    """Nothing is read behind it: the sanitizer's build would tell."""
    peer = broker.peer()
    publisher = peer.publisher("all/a")
    heartbeat = size.to_bytes(4, "big") + b"\x02\x00\x00\x00" + b"\x00" * (size - 8)
    transfer = frame(Transfer(handle=0, delivery_id=0, delivery_tag=b"0", settled=True), BODY)
    peer.feed(transfer + heartbeat)
    assert broker.entry("all/a").received == 1
    assert peer.finished == (size > 8)
    del publisher


def test_a_run_stops_at_a_message_that_is_too_large() -> None:
    broker = Broker(max_message_size=100)
    consumer = broker.peer().consumer("one/a", credit=100)
    publisher = broker.peer().publisher("one/a")
    sent = bodies(80, 80, 200, 80)
    publisher.send_at_once(sent, settled=True)
    assert consumer.bodies == sent[:2]
    assert publisher.detached is not None


def test_a_run_stops_where_the_window_does() -> None:
    broker = Broker(window=1000)
    consumer = broker.peer().consumer("one/a", credit=1000)
    sender = broker.peer(session_window_frames=10)
    publisher = sender.publisher("one/a")
    publisher.send_at_once(bodies(*[80] * 12), settled=True)
    assert len(consumer.bodies) == 10
    assert sender.main.ended is not None

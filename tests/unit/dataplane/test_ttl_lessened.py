"""A ttl is lessened by each place where a message waits (AMQP 1.0 §3.2.1)."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from peers import Peer
from wires import Broker

from cogwork.client.errors import InDoubt, Released
from cogwork.client.publishing.outcome import Outcome, OutcomeState, outcome_of
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.outbox import Outbox
from cogwork.dataplane.client.stream_outbox import StreamOutbox
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from cogwork.dataplane.client.dispatches import Batch

LONG_S = 60.0
WAIT_S = 0.05

HEADERS = {
    "short list, wide ttl": b"\x00\x53\x70\xc0\x08\x03\x40\x40\x70\x00\x00\xea\x60",
    "short list, narrow ttl": b"\x00\x53\x70\xc0\x05\x03\x40\x40\x52\xfa",
    "long list": b"\x00\x53\x70\xd0\x00\x00\x00\x0b\x00\x00\x00\x03\x40\x40\x70\x00\x00\xea\x60",
    "long descriptor": b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x70"
    b"\xc0\x09\x03\x41\x50\x09\x70\x00\x00\xea\x60",
    "all fields": b"\x00\x53\x70\xc0\x0c\x05\x56\x01\x50\x04\x70\x00\x00\xea\x60\x42\x43",
}
"""A ttl of 60 s, or of 250 ms, as it may be encoded (§1.6)."""


def data(body: bytes) -> bytes:
    return b"\x00\x53\x75\xa0" + bytes([len(body)]) + body


def ttl_of(message: bytes) -> float:
    ttl_s = Message.decode(message).ttl_s
    assert ttl_s is not None
    return ttl_s


@pytest.mark.parametrize("encoding", HEADERS)
@pytest.mark.parametrize("pieces", [1, 3, 20])
def test_what_waits_for_a_consumer_gets_older(encoding: str, pieces: int) -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"", settled=True)
    message = HEADERS[encoding] + data(b"x" * 100)
    publisher.send(message, settled=True, pieces=pieces)
    time.sleep(WAIT_S)
    broker.core.tick()
    consumer.flow(10)
    if len(consumer.bodies) == 1:
        assert ttl_of(message) < LONG_S, "on a slow machine the short one is over by now"
        return
    arrived = consumer.bodies[1]
    assert Message.decode(arrived).body == b"x" * 100
    assert len(arrived) == len(message)
    assert ttl_of(arrived) <= ttl_of(message) - WAIT_S + 0.001


def test_each_subscriber_gets_what_is_left_when_its_copy_leaves() -> None:
    broker = Broker()
    first = broker.peer().consumer("all/a", credit=0)
    second = broker.peer().consumer("all/a", credit=0)
    publisher = broker.peer().publisher("all/a")
    message = HEADERS["short list, wide ttl"] + data(b"x")
    publisher.send(message, settled=True)
    publisher.send(message, settled=True)
    time.sleep(WAIT_S)
    broker.core.tick()
    first.flow(10)
    time.sleep(WAIT_S)
    broker.core.tick()
    second.flow(10)
    for body in first.bodies:
        assert ttl_of(body) <= LONG_S - WAIT_S + 0.001
    for body in second.bodies:
        assert ttl_of(body) <= LONG_S - 2 * WAIT_S + 0.002
    assert [len(first.bodies), len(second.bodies)] == [2, 2]


def test_a_rule_of_the_address_is_no_ttl_of_the_message() -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    broker.entry("one/a").ttl_s = 100.0
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"", settled=True)
    publisher.send(data(b"x"), settled=True)
    time.sleep(WAIT_S)
    broker.core.tick()
    consumer.flow(10)
    assert consumer.bodies[1] == data(b"x")


class Sender:
    """An outbox, and what comes of it at the other end of a link."""

    def __init__(self, *, resends: bool = False) -> None:
        self.core = Core()
        self.outbox: Outbox[Outcome] = Outbox(
            Flusher(self.core, lambda run: run()),
            pytest.fail,
            partial(outcome_of, "one/a"),
            resends,
        )
        self.attach()

    def attach(self) -> None:
        self.peer = Peer(self.core)
        self.link = OutgoingLink(self.peer.session, 0)
        self.peer.session.map_link(0, self.link)
        self.outbox.attach(self.link)

    def lose(self) -> None:
        self.outbox.stop()
        self.link.detach()
        self.outbox.detach()
        self.peer.session.end()
        self.peer.wire.stop()
        self.attach()

    def flow(self) -> list[Message]:
        self.core.tick()
        self.peer.flow(self.link, 100)
        return [Message.decode(each.message) for each in self.peer.take()]


def outcomes_of(batch: Batch[Outcome]) -> list[OutcomeState]:
    with pytest.raises(StopIteration) as done:
        next(batch.__await__())
    return [each.state for each in done.value.value]


@pytest.mark.parametrize("settled", [True, False])
def test_what_waits_for_credit_at_its_sender_gets_older(settled: bool) -> None:
    sender = Sender()
    sender.outbox.post(Message(b"one", ttl_s=LONG_S), settled)
    sender.outbox.post_all([Message(b"two", ttl_s=LONG_S), b"three"], settled)
    time.sleep(WAIT_S)
    arrived = sender.flow()
    assert [each.body for each in arrived] == [b"one", b"two", b"three"]
    for each in arrived[:2]:
        assert each.ttl_s is not None
        assert each.ttl_s <= LONG_S - WAIT_S
    assert arrived[2].ttl_s is None


def test_what_leaves_at_once_has_all_of_its_time() -> None:
    sender = Sender()
    sender.flow()
    time.sleep(WAIT_S)
    sender.outbox.post(Message(b"one", ttl_s=LONG_S), True)
    assert [each.ttl_s for each in sender.flow()] == [LONG_S]


@pytest.mark.parametrize("settled", [True, False])
def test_what_is_over_before_there_is_credit_is_not_sent(settled: bool) -> None:
    sender = Sender()
    post = sender.outbox.post(Message(b"one", ttl_s=0.01), settled)
    short, long = Message(b"two", ttl_s=0.01), Message(b"three", ttl_s=LONG_S)
    batch = sender.outbox.post_all([long, short, short, long, short], settled)
    time.sleep(WAIT_S)
    assert [each.body for each in sender.flow()] == [b"three", b"three"]
    assert post.is_done
    assert post.expired
    assert isinstance(post.error(), Released)
    assert sender.outbox.backlog_count == 0
    if settled:
        assert outcomes_of(batch) == ["accepted", "released", "released", "accepted", "released"]


def test_what_is_sent_again_has_aged_since_it_was_posted() -> None:
    sender = Sender(resends=True)
    sender.flow()
    short = sender.outbox.post(Message(b"short", ttl_s=0.01))
    sender.outbox.post(Message(b"long", ttl_s=LONG_S))
    sender.outbox.post_all([Message(b"batch", ttl_s=LONG_S)])
    assert len(sender.peer.take()) == 3
    time.sleep(WAIT_S)
    sender.lose()
    arrived = sender.flow()
    assert [each.body for each in arrived] == [b"long", b"batch"]
    for each in arrived:
        assert each.ttl_s is not None
        assert each.ttl_s <= LONG_S - WAIT_S
    assert isinstance(short.error(), InDoubt), "it was sent once"
    assert not short.withdraw()


def test_a_stream_keeps_the_sequence_of_its_producer() -> None:
    core = Core()
    outbox: StreamOutbox[Outcome] = StreamOutbox(
        Flusher(core, lambda run: run()),
        pytest.fail,
        partial(outcome_of, "stream/a"),
        lambda: b"producer",
        lambda _delay_s, _work: None,
    )
    peer = Peer(core)
    link = OutgoingLink(peer.session, 0)
    peer.session.map_link(0, link)
    outbox.attach(link)
    outbox.append_one(Message(b"one", ttl_s=0.01))
    time.sleep(WAIT_S)
    peer.flow(link, 10)
    assert [Message.decode(each.message).body for each in peer.take()] == [b"one"]

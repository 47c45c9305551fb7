"""Deliveries of several transfers that nobody takes: their dead letters have all of them."""

import pytest
from wires import Broker, Consumer, Publisher

from cogwork.amqp.outcomes import Accepted, Released


class DeadLetterHandler:
    """What becomes dead letters, until it takes no more."""

    def __init__(self, broker: Broker, address: str) -> None:
        self.dead_letters: list[tuple[bytes, str]] = []
        self.is_open = True
        broker.entry(address).dead_letter = self.dead_letter

    def dead_letter(self, _entry: object, message: bytes, reason: str) -> bool:
        if self.is_open:
            self.dead_letters.append((message, reason))
        return self.is_open


def meet(broker: Broker, address: str = "one/a") -> tuple[Publisher, Consumer]:
    """Attach a publisher, which keeps its credit, and a consumer, which has used up its own."""
    publisher = broker.peer().publisher(address)
    publisher.knows_drain = False
    consumer = broker.peer().consumer(address, credit=1)
    publisher.send(b"", settled=True)
    return publisher, consumer


def abandoned(broker: Broker) -> Publisher:
    """Have a delivery begin, and the last consumer go in the middle of it."""
    publisher, consumer = meet(broker)
    publisher.start(b"large ")
    consumer.detach()
    return publisher


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("address", ["one/a", "all/a"])
@pytest.mark.parametrize("pieces", [1, 2, 30])
def test_the_dead_letter_is_the_same_for_any_number_of_transfers(
    address: str, pieces: int, settled: bool
) -> None:
    broker = Broker()
    handler = DeadLetterHandler(broker, address)
    publisher, consumer = meet(broker, address)
    consumer.detach()
    sent = publisher.send(b"x" * 100, pieces=pieces, settled=settled)
    assert handler.dead_letters == [(b"x" * 100, "unroutable")]
    assert publisher.outcomes == ({} if settled else {sent: Accepted()})
    assert broker.entry(address).received_bytes == 100
    broker.assert_clean()


@pytest.mark.parametrize("pieces", [1, 2, 30])
def test_who_wants_none_of_its_own_connection_is_nobody_for_it(pieces: int) -> None:
    broker = Broker()
    handler = DeadLetterHandler(broker, "all/a")
    broker.no_local = True
    peer = broker.peer()
    consumer = peer.consumer("all/a", credit=5)
    publisher = peer.publisher("all/a")
    sent = publisher.send(b"x" * 100, pieces=pieces)
    assert consumer.bodies == []
    assert handler.dead_letters == [(b"x" * 100, "unroutable")]
    assert publisher.outcomes == {sent: Accepted()}
    broker.assert_clean()


def test_whose_dead_letter_cannot_be_made_is_the_senders_again() -> None:
    broker = Broker()
    handler = DeadLetterHandler(broker, "one/a")
    handler.is_open = False
    publisher, consumer = meet(broker)
    consumer.detach()
    sent = [publisher.send(b"x" * 100, pieces=pieces) for pieces in (1, 2)]
    assert publisher.outcomes == dict.fromkeys(sent, Released())
    broker.assert_clean()


@pytest.mark.parametrize("settled", [False, True])
def test_the_last_consumer_goes_in_the_middle(settled: bool) -> None:
    broker = Broker()
    handler = DeadLetterHandler(broker, "one/a")
    publisher, consumer = meet(broker)
    sent = publisher.start(b"large ", settled=settled)
    publisher.more(b"and ")
    consumer.detach()
    assert (handler.dead_letters, broker.core.held_bytes) == ([], len(b"large and "))
    publisher.more(b"dead", more=False)
    assert handler.dead_letters == [(b"large and dead", "unroutable")]
    assert publisher.outcomes == ({} if settled else {sent: Accepted()})
    entry = broker.entry("one/a")
    assert (entry.received, entry.received_bytes) == (2, len(b"large and dead"))
    broker.assert_clean()


def test_another_consumer_gets_what_the_last_one_left_in_the_middle() -> None:
    broker = Broker()
    handler = DeadLetterHandler(broker, "one/a")
    publisher = abandoned(broker)
    second = broker.peer().consumer("one/a", credit=1)
    publisher.more(b"rest", more=False)
    assert (second.bodies, handler.dead_letters) == ([b"large rest"], [])
    second.accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


def test_who_gives_up_after_the_last_consumer_has_gone_leaves_nothing() -> None:
    broker = Broker()
    handler = DeadLetterHandler(broker, "one/a")
    abandoned(broker).abort()
    assert handler.dead_letters == []
    broker.assert_clean()

"""Time-to-live where nothing is stored: what waits for credit longer than it may (§3.2.1)."""

import time

import pytest
from wires import Broker

from cogwork.amqp.outcomes import Accepted, Released

SHORT_S = 0.02


def with_ttl(body: bytes, ttl_ms: int) -> bytes:
    """Return a message of a header with a ttl, and a data section."""
    header = b"\x00\x53\x70\xc0\x08\x03\x40\x40\x70" + ttl_ms.to_bytes(4, "big")
    return header + b"\x00\x53\x75\xa0" + bytes([len(body)]) + body


def pass_time(broker: Broker, seconds: float = SHORT_S * 1.5) -> None:
    time.sleep(seconds)
    broker.core.tick()
    broker.core.expire_held()
    broker.settle_down()


def dead_letters_from(broker: Broker) -> list[tuple[bytes, str]]:
    """Return what becomes dead letters from now on, each with the reason."""
    dead_lettered: list[tuple[bytes, str]] = []
    entry = broker.entry("one/a")

    def dead_letter(_entry: object, message: bytes, reason: str) -> bool:
        dead_lettered.append((message, reason))
        return True

    entry.dead_letter = dead_letter
    return dead_lettered


def test_a_message_held_longer_than_its_ttl_is_released() -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    sent = publisher.send(b"taken")
    short = publisher.send(with_ttl(b"short", 20))
    publisher.send(with_ttl(b"settled", 20), settled=True)
    lasting = publisher.send(with_ttl(b"lasting", 60_000))
    pass_time(broker)
    entry = broker.entry("one/a")
    assert publisher.outcomes == {short: Released()}
    assert (entry.held, entry.expired) == (1, 2)
    consumer.flow(10)
    assert consumer.bodies[0] == b"taken"
    assert consumer.bodies[1][-7:] == b"lasting"
    assert len(consumer.bodies) == 2
    consumer.accept_all()
    assert publisher.outcomes == {short: Released(), sent: Accepted(), lasting: Accepted()}
    broker.assert_clean()


@pytest.mark.parametrize("pieces", [1, 2, 3, 30])
def test_how_many_transfers_a_message_has_makes_no_difference(pieces: int) -> None:
    broker = Broker()
    dead_lettered = dead_letters_from(broker)
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"taken", settled=True)
    publisher.send(with_ttl(b"x" * 100, 20), pieces=pieces)
    pass_time(broker)
    assert dead_lettered == [(with_ttl(b"x" * 100, 20), "expired")]
    consumer.flow(10)
    assert consumer.bodies == [b"taken"]


def test_credit_that_comes_too_late_finds_nothing() -> None:
    """Between two looks at the clock it is the consumer's credit that finds out."""
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    publisher.send(settled=True)
    late = publisher.send(with_ttl(b"late", 20))
    time.sleep(SHORT_S * 1.5)
    consumer.flow(10)
    assert len(consumer.arrivals) == 1
    assert publisher.outcomes == {late: Released()}
    consumer.accept_all()
    broker.assert_clean()


@pytest.mark.parametrize("own_ttl_ms", [None, 60_000])
def test_an_address_bounds_the_life_of_every_message(own_ttl_ms: int | None) -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    broker.entry("one/a").ttl_s = SHORT_S
    publisher = broker.peer().publisher("one/a")
    publisher.send(settled=True)
    held = publisher.send(b"x" if own_ttl_ms is None else with_ttl(b"x", own_ttl_ms))
    pass_time(broker)
    assert publisher.outcomes == {held: Released()}
    consumer.accept_all()
    broker.assert_clean()


def test_the_dead_letter_address_gets_what_expired_whole_and_with_the_reason() -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    dead_lettered = dead_letters_from(broker)
    publisher = broker.peer().publisher("one/a")
    publisher.send(settled=True)
    message = with_ttl(b"x" * 200, 20)
    expired = publisher.send(message)
    pass_time(broker)
    assert dead_lettered == [(message, "expired")]
    assert publisher.outcomes == {expired: Accepted()}
    consumer.accept_all()
    broker.assert_clean()


def test_what_the_last_consumer_leaves_behind_is_dead_lettered_whole() -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    dead_lettered = dead_letters_from(broker)
    publisher = broker.peer().publisher("one/a")
    publisher.send(settled=True)
    publisher.send(b"held" * 1000, pieces=4)
    publisher.send(b"settled" * 100, settled=True)
    consumer.detach()
    assert dead_lettered == [(b"held" * 1000, "unroutable"), (b"settled" * 100, "unroutable")]
    broker.assert_clean()


def test_a_subscriber_is_spared_what_waited_too_long_for_it() -> None:
    broker = Broker()
    slow = broker.peer().consumer("all/a", credit=1)
    fast = broker.peer().consumer("all/a", credit=50)
    publisher = broker.peer().publisher("all/a")
    for number in range(3):
        publisher.send(with_ttl(b"%d" % number, 20))
    publisher.send(b"lasting")
    fast.accept_all()
    pass_time(broker)
    slow.flow(10)
    assert slow.bodies == [with_ttl(b"0", 20), b"lasting"]
    assert len(fast.arrivals) == 4
    assert slow.end.dropped == 2
    slow.accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


def test_a_subscriber_that_is_late_for_a_run_is_spared_too() -> None:
    broker = Broker(window=1000)
    slow = broker.peer().consumer("all/a", credit=2)
    publisher = broker.peer().publisher("all/a")
    publisher.send_at_once([with_ttl(b"%100d" % number, 20) for number in range(50)])
    pass_time(broker)
    slow.flow(100)
    assert len(slow.arrivals) == 2
    slow.accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    broker.assert_clean()


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x00\x53\x70", b"\x00\x53\x70\xc0\x05\x01\x70"])
def test_what_is_no_message_lives_for_ever(body: bytes) -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    publisher.send(settled=True)
    publisher.send(body)
    pass_time(broker)
    assert broker.entry("one/a").held == 1
    consumer.flow(10)
    assert consumer.bodies[1:] == [body]
    consumer.accept_all()
    broker.assert_clean()


def test_a_dead_letter_that_cannot_be_made_keeps_no_other_message() -> None:
    broker = Broker()
    faults: list[object] = []
    broker.core.on_error = lambda _who, error: faults.append(error)
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"taken", settled=True)
    dead_lettered: list[bytes] = []

    def dead_letter(_entry: object, message: bytes, _reason: str) -> bool:
        if message.endswith(b"first"):
            raise RuntimeError("broken")
        dead_lettered.append(message)
        return True

    broker.entry("one/a").dead_letter = dead_letter
    first = publisher.send(with_ttl(b"first", 20))
    second = publisher.send(with_ttl(b"second", 20))
    pass_time(broker)
    assert dead_lettered == [with_ttl(b"second", 20)]
    assert publisher.outcomes == {first: Released(), second: Accepted()}
    assert [str(each) for each in faults] == ["broken"]
    consumer.accept_all()
    broker.assert_clean()


def test_what_is_over_leaves_the_others_in_their_order() -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher = broker.peer().publisher("one/a")
    publisher.send(b"taken", settled=True)
    lasting = [b"%d" % number for number in range(12)]
    for number, body in enumerate(lasting):
        if number % 3 != 1:
            publisher.send(with_ttl(b"short", 20), settled=True)
        publisher.send(body, settled=True)
    publisher.send(with_ttl(b"last", 20), settled=True)
    pass_time(broker)
    assert broker.entry("one/a").held == 12
    publisher.send(b"later", settled=True)
    consumer.flow(100)
    assert consumer.bodies == [b"taken", *lasting, b"later"]
    broker.assert_clean()


def test_what_comes_back_to_where_it_expired_is_looked_at_once_a_round() -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=1)
    publisher, again = broker.peer().publisher("one/a"), broker.peer().publisher("one/a")
    publisher.send(b"taken", settled=True)
    rounds: list[bytes] = []

    def dead_letter(_entry: object, message: bytes, _reason: str) -> bool:
        rounds.append(message)
        again.send(message, settled=True)
        return True

    broker.entry("one/a").dead_letter = dead_letter
    publisher.send(with_ttl(b"round", 20), settled=True)
    for count in range(1, 6):
        pass_time(broker)
        assert len(rounds) == count
    broker.entry("one/a").dead_letter = None
    assert sum(each is broker.entry("one/a") for each in _watched(broker)) == 1
    consumer.flow(1)
    broker.assert_clean()


def _watched(broker: Broker) -> list[object]:
    """Return the addresses that the core looks at for what is over."""
    return list(broker.core.expiring)

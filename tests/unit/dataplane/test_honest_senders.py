"""Who sends on credit that was granted is never detached, whatever became of that credit since."""

import random

import pytest
from wires import Broker, Consumer, Publisher

from cogwork.amqp.errors import Condition
from cogwork.amqp.outcomes import Released
from cogwork.amqp.performatives import MAX_UINT

BURST_MAX = 150


def unsigned_credit(publisher: Publisher) -> int:
    """Count credit as qpid-proton does: less than nothing is very much."""
    return publisher.limit - publisher.delivery_count & MAX_UINT


@pytest.mark.parametrize("knows_drain", [True, False], ids=["drains", "keeps"])
@pytest.mark.parametrize("address", ["one/a", "least/a"])
@pytest.mark.parametrize("seed", range(100))
def test_an_honest_sender_is_never_detached(address: str, seed: int, knows_drain: bool) -> None:
    """Credit comes and goes with the consumers; what is said takes its time either way."""
    chance = random.Random(seed)
    broker = Broker(window=chance.choice([1, 10, 100]))
    sender = broker.peer()
    publisher = sender.publisher(address)
    publisher.knows_drain = knows_drain
    consumers: list[Consumer] = []
    for _ in range(chance.randrange(5, 60)):
        step = chance.random()
        if step < 0.25:
            consumers.append(broker.peer().consumer(address, credit=chance.choice([0, 1, 5, 200])))
        elif step < 0.4 and consumers:
            consumer = consumers.pop(chance.randrange(len(consumers)))
            if chance.random() < 0.5:
                consumer.detach()
            else:
                consumer.channel.peer.vanish()
        elif step < 0.5 and consumers:
            chance.choice(consumers).flow(chance.choice([0, 1, 20, 300]))
        elif step < 0.55 and consumers:
            chance.choice(consumers).accept_all()
        elif step < 0.65:
            sender.is_deaf = not sender.is_deaf
            broker.settle_down()
        else:
            send_some(publisher, chance)
        assert publisher.detached is None
    sender.is_deaf = False
    broker.settle_down()
    for consumer in consumers:
        consumer.accept_all()
        consumer.detach()
    broker.settle_down()
    assert publisher.detached is None
    assert publisher.outcomes.keys() == publisher.sent
    broker.assert_clean()


def send_some(publisher: Publisher, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 3, BURST_MAX])):
        if not unsigned_credit(publisher):
            break
        is_large = chance.random() < 0.1
        publisher.send(
            b"x" * (2000 if is_large else 10),
            settled=chance.random() < 0.3,
            pieces=3 if is_large else 1,
        )


def test_credit_that_a_sender_keeps_may_be_used_and_no_more(broker: Broker) -> None:
    publisher = broker.peer().publisher("one/a")
    publisher.knows_drain = False
    consumer = broker.peer().consumer("one/a", credit=50)
    consumer.detach()
    sent = [publisher.send() for _ in range(50)]
    assert publisher.outcomes == dict.fromkeys(sent, Released())
    assert publisher.detached is None
    publisher.send()
    assert publisher.detached is not None
    assert publisher.detached.error is not None
    assert publisher.detached.error.condition == Condition.LINK_TRANSFER_LIMIT_EXCEEDED


def test_a_sender_that_gave_its_credit_back_gets_it_again_with_the_next_consumer(
    broker: Broker,
) -> None:
    publisher = broker.peer().publisher("one/a")
    for _ in range(3):
        consumer = broker.peer().consumer("one/a", credit=50)
        assert publisher.credit == 50
        consumer.detach()
        assert publisher.credit == 0
    broker.peer().consumer("one/a", credit=20)
    assert publisher.credit == 32


def test_a_drain_that_crosses_a_new_grant_leaves_credit(broker: Broker) -> None:
    sender = broker.peer()
    publisher = sender.publisher("one/a")
    consumer = broker.peer().consumer("one/a", credit=50)
    sender.is_deaf = True
    consumer.detach()
    broker.settle_down()
    broker.peer().consumer("one/a", credit=50)
    sender.is_deaf = False
    broker.settle_down()
    assert publisher.credit == 50

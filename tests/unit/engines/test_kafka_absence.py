"""A topic that is gone, and one of which a broker has not heard yet."""

from __future__ import annotations

import pytest

from cogwork.engines.kafka.absence import ABSENT_S, Absence
from cogwork.engines.shared.server import Gone, ServerDown


class Broker:
    """One that answers at times that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.absence = Absence(lambda: self.now_s)

    def knows_nothing(self) -> None:
        with self.absence.judged():
            raise Gone


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_what_was_never_there_is_gone_at_once(broker: Broker) -> None:
    with pytest.raises(Gone):
        broker.knows_nothing()


def test_what_was_there_is_gone_only_after_a_while(broker: Broker) -> None:
    broker.absence.end()
    for _ in range(2):
        with pytest.raises(ServerDown):
            broker.knows_nothing()
        broker.now_s += ABSENT_S / 2
    with pytest.raises(Gone):
        broker.knows_nothing()


def test_what_comes_back_in_between_begins_the_while_anew(broker: Broker) -> None:
    broker.absence.end()
    with pytest.raises(ServerDown):
        broker.knows_nothing()
    broker.now_s += ABSENT_S
    broker.absence.end()
    with pytest.raises(ServerDown):
        broker.knows_nothing()


def test_other_troubles_pass(broker: Broker) -> None:
    with pytest.raises(ServerDown, match="no answer"), broker.absence.judged():
        raise ServerDown("no answer")

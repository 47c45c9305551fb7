"""What a container does with the items of one that leaves: kept aside, then in its own queue."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cogwork.amqp.errors import Condition
from cogwork.container.federation.move_intake import MoveIntake
from cogwork.container.federation.move_link import ACCEPTED, REJECTED, RELEASED
from cogwork.container.mesh.names import DURABILITY, MOVE
from cogwork.dataplane.core import Core
from cogwork.nodes.queue import QueueNode
from cogwork.plugin.node import Refused

KEY = ("b", 7, "work/a")


class Queue(QueueNode):
    """A queue that is a list."""

    is_on_disk = False

    def __init__(self) -> None:
        self.store: Any = self
        self.journal: Any = None
        self.replica: Any = None
        self.items: list[bytes] = []
        self.room = 100

    def flaw_of(self, message: bytes, message_format: int) -> str | None:
        return f"format {message_format} is none of mine" if message == b"13" else None

    def put(self, message: bytes, _format: int, _past: object) -> bool:
        if len(self.items) >= self.room:
            return False
        self.items.append(message)
        return True


class Arrivals:
    """An intake, and the queue that it puts items into."""

    def __init__(self) -> None:
        self.queue: Any = Queue()
        self.is_leaving = False
        self.core = Core()
        self.intake = MoveIntake(self.core, lambda: self.is_leaving)

    def prepare(self, *numbers: int) -> list[str | None]:
        return [
            self.intake.prepare(KEY, self.queue, number, (b"%d" % number, 7, None))
            for number in numbers
        ]

    def activate(self, *numbers: int) -> int:
        return self.intake.activate(KEY, self.queue, list(numbers))


@pytest.fixture
def arrivals() -> Arrivals:
    return Arrivals()


def test_what_is_repeated_is_there_once(arrivals: Arrivals) -> None:
    arrivals.prepare(1, 2)
    arrivals.prepare(1, 2)
    assert arrivals.activate(1, 2) == ACCEPTED
    arrivals.prepare(1, 2)
    assert arrivals.activate(1, 2) == ACCEPTED
    assert arrivals.queue.items == [b"1", b"2"]


def test_what_is_not_known_is_not_taken_for_activated(arrivals: Arrivals) -> None:
    arrivals.prepare(1)
    assert arrivals.activate(1, 2) == REJECTED
    assert arrivals.queue.items == []
    arrivals.prepare(2)
    assert arrivals.activate(1, 2) == ACCEPTED
    assert arrivals.activate(3) == REJECTED


def test_what_an_earlier_life_was_given_is_not_taken_for_activated(arrivals: Arrivals) -> None:
    arrivals.prepare(4, 5, 7)
    assert arrivals.activate(4, 5, 7) == ACCEPTED
    assert arrivals.activate(1, 2, 3) == REJECTED
    assert arrivals.activate(6) == REJECTED
    arrivals.prepare(1, 2, 3)
    assert arrivals.activate(1, 2, 3) == ACCEPTED
    assert arrivals.activate(5, 7, 2) == ACCEPTED
    assert arrivals.queue.items == [b"4", b"5", b"7", b"1", b"2", b"3"]


def test_what_is_repeated_is_confirmed_when_it_is_durable(arrivals: Arrivals) -> None:
    """The first answer may have been lost while the disk did not have the items yet."""
    asked: list[int] = []
    arrivals.core.on_barrier = lambda: asked.append(1)
    arrivals.prepare(1)
    assert arrivals.activate(1) == ACCEPTED
    assert arrivals.activate(1) == ACCEPTED
    assert asked == [], "in memory there is nothing to wait for, and nobody to say that it is over"
    arrivals.queue.journal = object()
    assert arrivals.activate(1) == ACCEPTED
    assert asked == [1]


def test_a_queue_that_another_container_owns_takes_nothing_here(arrivals: Arrivals) -> None:
    arrivals.queue.replica = SimpleNamespace(epoch=None)
    arrivals.prepare(1)
    assert arrivals.activate(1) == RELEASED
    arrivals.queue.replica.epoch = 3
    assert arrivals.activate(1) == ACCEPTED
    arrivals.queue.replica.epoch = None
    arrivals.queue.address, arrivals.queue.is_on_disk = "work/a", True
    link: Any = SimpleNamespace()
    attach: Any = SimpleNamespace(properties={MOVE: 7, DURABILITY: "disk"})
    with pytest.raises(Refused, match="another container owns it") as refused:
        arrivals.intake.take(link, attach, "b", arrivals.queue)
    assert refused.value.condition == Condition.PRECONDITION_FAILED, "it is not asked again"


def test_a_full_queue_takes_the_rest_later(arrivals: Arrivals) -> None:
    arrivals.prepare(1, 2, 3)
    arrivals.queue.room = 2
    assert arrivals.activate(1, 2, 3) == RELEASED
    arrivals.queue.room = 3
    assert arrivals.activate(1, 2, 3) == ACCEPTED
    assert arrivals.queue.items == [b"1", b"2", b"3"]


def test_one_that_leaves_says_what_it_has_and_takes_no_more(arrivals: Arrivals) -> None:
    arrivals.prepare(1, 2)
    assert arrivals.activate(1) == ACCEPTED
    arrivals.is_leaving = True
    assert (arrivals.activate(1, 2), arrivals.activate(1)) == (RELEASED, ACCEPTED)
    assert arrivals.queue.items == [b"1"]


def test_what_is_kept_aside_goes_with_the_life_of_the_container_that_brought_it(
    arrivals: Arrivals,
) -> None:
    arrivals.prepare(1, 2)
    assert arrivals.activate(1) == ACCEPTED
    for _ in range(2):
        arrivals.intake.forget_all_but({"a": 1, "b": 7})
    arrivals.intake.forget_all_but({"a": 1})
    assert arrivals.activate(2) == ACCEPTED, "it is leaving, and not known yet"
    for lives in ({"b": 8}, {}):
        arrivals.prepare(3)
        for _ in range(2):
            arrivals.intake.forget_all_but(lives)
        assert arrivals.activate(1, 2) == ACCEPTED, "what was taken over is still known"
        assert arrivals.activate(3) == REJECTED
    assert arrivals.queue.items == [b"1", b"2"]


def test_the_clock_of_a_container_goes_with_its_life(arrivals: Arrivals) -> None:
    """And stays the same until then, for the order of what is due."""
    intake = arrivals.intake
    for incarnation in range(1, 100):
        clock_s = intake._clock("b", incarnation, 7)
        intake.forget_all_but({"b": incarnation - 1})  # it is not known yet
        intake.forget_all_but({"b": incarnation})
        intake.forget_all_but({})  # or is away for a moment
        assert intake._clock("b", incarnation, 7_000_000) == clock_s
        intake.forget_all_but({"b": incarnation})
    for _ in range(2):
        assert len(intake._clocks) <= 2
        intake.forget_all_but({"a": 1})
    assert intake._clocks == {}


def test_what_can_never_be_taken_is_refused_before_it_is_given_up(arrivals: Arrivals) -> None:
    assert arrivals.prepare(12, 13, 14) == [None, "format 7 is none of mine", None]
    assert arrivals.activate(12, 14) == ACCEPTED
    assert arrivals.queue.items == [b"12", b"14"]

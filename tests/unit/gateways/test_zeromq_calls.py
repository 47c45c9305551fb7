"""Calls under way: offered again while nobody takes them, given up in time, bounded."""

from __future__ import annotations

import pytest

from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.calls import GRACE_S, UNDER_WAY_MAX, Call, Calls, Deadlines
from cogwork.gateways.zeromq.errors import Fault
from cogwork.plugin.door import Code


class Stage:
    """Calls, with a clock that tests move, and what was sent."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.sent: list[tuple[float, int, float]] = []
        self.ended: list[Message | None] = []
        self.served: set[str] = set()
        self.calls = Calls(self._post, self.served.__contains__, lambda: self.now_s, bytes)

    def _post(self, message: Message, token: int) -> None:
        self.sent.append((self.now_s, token, round(message.ttl_s or 0.0, 3)))

    def begin(self, timeout_s: float, *, is_own: bool = False, address: str = "unicast/a") -> int:
        number = self.calls.next_number()
        call = Call(
            number,
            None,
            None,
            number,
            address,
            Message(None, to=address),
            self.now_s + timeout_s,
            has_reply=True,
            name=str(number),
            on_end=self.ended.append if is_own else None,
        )
        self.calls.begin(call)
        return number

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            self.calls.tick(self.now_s)


def test_a_call_that_nobody_takes_is_offered_again_with_the_time_that_is_left() -> None:
    stage = Stage()
    number = stage.begin(10.0)
    for _ in range(4):
        stage.calls.on_outcome(number, Code.RELEASED, "")
        stage.run(1.3)
    times = [at_s for at_s, _, _ in stage.sent]
    assert len(times) == 5
    assert [token for _, token, _ in stage.sent] == [number] * 5
    for at_s, _, ttl_s in stage.sent:
        assert ttl_s == pytest.approx(110.0 - at_s)


def test_a_call_ends_with_its_deadline_and_leaves_nothing() -> None:
    stage = Stage()
    stage.begin(1.0)
    stage.run(0.9)
    assert len(stage.calls) == 1
    stage.run(GRACE_S + 0.4)
    assert len(stage.calls) == 0
    assert stage.calls.timed_out == 1


def test_what_comes_too_late_finds_nobody() -> None:
    stage = Stage()
    number = stage.begin(1.0)
    stage.run(1.5)
    stage.calls.on_outcome(number, Code.ACCEPTED, "")
    assert stage.calls.take(str(number)) is None


@pytest.mark.parametrize("name", [None, 7, b"1", "", "-1", "x", "9" * 30, "٣"])
def test_a_correlation_id_that_is_none_of_ours_finds_nobody(name: object) -> None:
    stage = Stage()
    stage.begin(1.0)
    assert stage.calls.take(name) is None
    assert len(stage.calls) == 1


def test_the_gateways_own_calls_are_told_at_once_that_nobody_is_there() -> None:
    stage = Stage()
    number = stage.begin(2.0, is_own=True)
    stage.calls.on_outcome(number, Code.RELEASED, "")
    assert stage.ended == [None]
    number = stage.begin(2.0, is_own=True)
    call = stage.calls.take(str(number))
    assert call is not None
    assert call.on_end is not None


def test_one_address_cannot_take_all_there_is() -> None:
    stage = Stage()
    numbers = [stage.begin(1.0, address="unicast/slow") for _ in range(UNDER_WAY_MAX)]
    with pytest.raises(Fault, match="1000 calls and casts are under way"):
        stage.begin(1.0, address="unicast/slow")
    stage.begin(1.0, address="unicast/other")
    stage.calls.on_outcome(numbers[0], Code.REJECTED, "no")
    stage.begin(1.0, address="unicast/slow")


def test_deadlines_are_taken_once_and_may_be_taken_back() -> None:
    deadlines = Deadlines()
    for number in range(5):
        deadlines.add(number, 10.0 + number)
    deadlines.remove(1, 11.0)
    assert list(deadlines.take(10.05)) == []
    assert list(deadlines.take(12.5)) == [0, 2]
    assert list(deadlines.take(100.0)) == [3, 4]
    assert list(deadlines.take(1000.0)) == []


def test_where_one_that_is_due_fails_the_others_stay_due() -> None:
    deadlines = Deadlines()
    for number in range(5):
        deadlines.add(number, 10.0)
    taken = [next(deadlines.take(20.0))]
    taken += deadlines.take(20.0)
    assert sorted(taken) == [0, 1, 2, 3, 4]
    assert list(deadlines.take(20.0)) == []

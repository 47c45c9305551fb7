"""Which attempts were confirmed: the ring beside a dictionary that keeps the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.dataplane.queue.commits import Commits

COUNT_MAX = 65_536
KEPT_S = 86_400


class Model:
    """The last confirmed attempts, kept the plain way."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, int, int]] = []

    def add(self, number: int, attempt: int, at_s: int) -> None:
        self.kept = [*self.kept, (number, attempt, at_s)][-COUNT_MAX:]

    def attempt_of(self, number: int, now_s: int) -> int:
        found = [each for each in self.kept if each[0] == number]
        return found[-1][1] if found and found[-1][2] + KEPT_S >= now_s else 0


def number_of(birth: int, slot: int) -> int:
    return birth << 32 | slot


@settings(max_examples=200)
@given(
    steps=st.lists(
        st.tuples(
            st.integers(0, 2**32 - 2),  # birth
            st.integers(0, 40),  # slot
            st.integers(1, 2**32 - 1),  # attempt
            st.sampled_from([0, 0, 1, 3_600, KEPT_S + 1]),  # seconds that pass
        ),
        max_size=200,
    )
)
def test_each_recent_one_is_found_and_no_other(steps: list[tuple[int, int, int, int]]) -> None:
    commits, model = Commits(), Model()
    now_s, asked = 1_700_000_000, set[int]()
    for birth, slot, attempt, passed_s in steps:
        now_s += passed_s
        number = number_of(birth, slot)
        if number in asked:
            continue  # an item is confirmed once
        commits.add(number, attempt, now_s)
        model.add(number, attempt, now_s)
        asked |= {number}
        assert commits.attempt_of(number, now_s) == attempt
        assert commits.attempt_of(number + (1 << 32), now_s) == model.attempt_of(
            number + (1 << 32), now_s
        )
    for number in asked:
        for later_s in (0, KEPT_S // 2, KEPT_S + 1):
            expected = model.attempt_of(number, now_s + later_s)
            assert commits.attempt_of(number, now_s + later_s) == expected
    recent = [each for each in model.kept if each[2] + KEPT_S >= now_s]
    assert commits.remembered(now_s) == recent
    again = Commits()
    for each in commits.remembered(now_s):
        again.add(*each)
    assert again.remembered(now_s) == recent


def test_of_very_many_the_last_are_known_and_memory_is_bounded() -> None:
    commits = Commits()
    total = 5 * COUNT_MAX + 7
    for count in range(total):
        commits.add(number_of(count, count % 1000), 1 + count % 3, 1_700_000_000)
    assert len(commits) == COUNT_MAX
    for count in range(total - COUNT_MAX, total, 97):
        number = number_of(count, count % 1000)
        assert commits.attempt_of(number, 1_700_000_000) == 1 + count % 3
    for count in range(0, total - COUNT_MAX, 997):
        assert commits.attempt_of(number_of(count, count % 1000), 1_700_000_000) == 0


def test_what_is_old_makes_room_before_more_is_taken() -> None:
    commits = Commits()
    for count in range(10_000):
        commits.add(number_of(1, count), 1, 1_700_000_000 + count * KEPT_S // 50)
    assert len(commits) <= 64


def test_a_clock_that_was_set_back_forgets_nothing() -> None:
    commits = Commits()
    commits.add(7, 2, 1_700_000_000)
    assert commits.attempt_of(7, 1_600_000_000) == 2
    assert commits.attempt_of(7, 0) == 2

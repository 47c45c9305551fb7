"""A container looks at all its objects seldom, however many its clients make."""

from __future__ import annotations

import gc
from collections import deque
from typing import TYPE_CHECKING

import pytest

from cogwork.cli.process.garbage import OLD_ROUNDS, SHARE, GarbageCollection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY = 200_000


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    gc.freeze()
    gc.collect()  # of nothing: from here on it counts what these tests make
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class Later:
    """Calls what was to be called later when the test says so.

    Attributes:
        delays_s: How much later, each time.
    """

    def __init__(self) -> None:
        self.delays_s: list[float] = []
        self._callbacks: deque[Callable[[], None]] = deque()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.delays_s.append(delay_s)
        self._callbacks.append(callback)

    def run(self) -> None:
        self._callbacks.popleft()()


def full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


def grow_old() -> list[list[object]]:
    """Make so many objects that CPython would look at all of them."""
    return [[] for _ in range(MANY)]


def test_growth_alone_has_nobody_look_at_everything() -> None:
    assert grow_old()
    before = full_collections()
    as_cpython_does = grow_old()
    assert full_collections() > before
    GarbageCollection(Later().call_later).start()
    before = full_collections()
    kept = grow_old()
    assert full_collections() == before
    del as_cpython_does, kept


def test_a_look_at_everything_takes_one_part_in_many_of_the_time() -> None:
    later, clock_s = Later(), iter([10.0, 10.5])
    GarbageCollection(later.call_later, lambda: next(clock_s)).start()
    kept = grow_old()
    assert gc.get_count()[2] >= OLD_ROUNDS
    before = full_collections()
    later.run()
    assert full_collections() == before + 1
    assert later.delays_s[-1] == SHARE * 0.5
    del kept


def test_nothing_is_looked_at_where_nothing_has_grown_old() -> None:
    later = Later()
    GarbageCollection(later.call_later).start()
    before = full_collections()
    later.run()
    assert full_collections() == before
    assert later.delays_s[-1] == later.delays_s[0]


def test_cycles_that_have_grown_old_are_found() -> None:
    later = Later()
    GarbageCollection(later.call_later).start()
    kept = grow_old()
    for each in kept:
        each.append(each)
    del kept, each
    before = len(gc.get_objects())
    later.run()
    assert len(gc.get_objects()) < before - MANY // 2

"""Runs and breaks, without Spark: a run is a batch, a break is explained."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from audit_tables import BEGAN_US

from cogwork.pipeline.audit.delivery_recorder import digest_of
from cogwork.pipeline.audit.runs import Break, explain, fold

SEEDS = range(40)


def breaks_of(numbers: list[int], batch: int) -> list[Break]:
    """Fold numbers in batches, and find the breaks as the query does."""
    breaks, before = list[Break](), None
    for at in range(0, len(numbers), batch):
        part = np.array(numbers[at : at + batch])
        place = np.arange(at, at + len(part))
        runs = fold(np.zeros(len(part), np.int64), part, place, place, times_rise=False)
        for first, last, begun in zip(runs.first, runs.last, runs.place_first, strict=True):
            if before is not None and first != before + 1:
                breaks.append(Break(0, before, int(first), int(last), int(begun)))
            before = int(last) if before is None else max(before, int(last))
    return breaks


def expanded(rows: list[dict[str, int]], kind: str) -> Counter[int]:
    return Counter(
        number
        for row in rows
        if row["kind"] == kind
        for number in range(row["first"], row["last"] + 1)
    )


def test_numbers_that_count_up_have_no_breaks_however_they_are_cut() -> None:
    assert [breaks_of(list(range(100)), batch) for batch in (1, 7, 100)] == [[], [], []]


def test_two_that_are_swapped_are_one_finding() -> None:
    for batch in (1, 3, 100):
        rows = explain(breaks_of([0, 1, 2, 4, 3, 5, 6], batch))
        assert rows == [{"kind": "swapped", "first": 3, "last": 3, "place": 4, "after": 4}]


def test_whatever_is_lost_and_repeated_is_told_number_by_number() -> None:
    for seed in SEEDS:
        stage = random.Random(seed)
        lost = set(stage.sample(range(1, 59), 5))
        numbers = [each for each in range(60) if each not in lost]
        for at in sorted(stage.sample(range(1, len(numbers)), 4), reverse=True):
            numbers.insert(at, stage.choice(numbers[:at]))
        rows = explain(breaks_of(numbers, stage.choice((1, 5, 64))))
        assert set(expanded(rows, "missing")) == lost, seed
        repeated = Counter(numbers) - Counter(set(numbers))
        assert expanded(rows, "duplicate") == repeated, seed


def test_numbers_in_any_order_are_late_or_in_time_and_never_missing() -> None:
    for seed in SEEDS:
        stage = random.Random(seed)
        numbers = [0, *stage.sample(range(1, 40), 39)]
        rows = explain(breaks_of(numbers, 6))
        late = {each for at, each in enumerate(numbers) if each < max(numbers[:at], default=0)}
        assert set(expanded(rows, "swapped")) == late, seed
        assert len(expanded(rows, "swapped")) + len(rows) > 0, seed
        assert not expanded(rows, "missing") + expanded(rows, "duplicate"), seed


def test_time_that_goes_back_ends_a_run() -> None:
    number = np.arange(4)
    time = BEGAN_US + np.array([0, 2, 1, 3])
    runs = fold(np.zeros(4, np.int64), number, number, time, times_rise=True)
    assert list(runs.first) == [0, 2]


def test_digests_cover_offset_and_body() -> None:
    assert digest_of(1, b"a") == digest_of(1, "a") == digest_of(1, memoryview(b"a"))
    assert len({digest_of(1, b"a"), digest_of(2, b"a"), digest_of(1, b"b")}) == 3
    assert digest_of(1, 5) is None

"""Who owns the partitions of a queue."""

from __future__ import annotations

from collections import Counter

from cogwork.router.partitions import owners_of

QUEUE = "work/orders"
COUNT = 32
FREE = dict.fromkeys("abcde", 0)


def without(members: dict[str, int], container: str) -> dict[str, int]:
    return {name: held for name, held in members.items() if name != container}


def test_one_that_is_alone_owns_all() -> None:
    assert owners_of(QUEUE, 4, {"a": 0}) == ["a"] * 4


def test_where_there_is_nobody_nobody_owns_any() -> None:
    assert owners_of(QUEUE, 4, {}) == [None] * 4


def test_all_come_to_the_same_owners_in_whatever_order_they_hear_of_each_other() -> None:
    assert owners_of(QUEUE, COUNT, FREE) == owners_of(QUEUE, COUNT, dict(reversed(FREE.items())))


def test_queues_are_shared_out_one_by_one() -> None:
    assert owners_of(QUEUE, COUNT, FREE) != owners_of("work/others", COUNT, FREE)


def test_each_gets_a_share() -> None:
    owned = Counter(
        owner for queue in range(50) for owner in owners_of(f"work/{queue}", COUNT, FREE)
    )
    fair = 50 * COUNT / len(FREE)
    assert all(0.8 * fair < owned[each] < 1.2 * fair for each in FREE)


def test_one_that_goes_leaves_the_others_what_they_had() -> None:
    before = owners_of(QUEUE, COUNT, FREE)
    after = owners_of(QUEUE, COUNT, without(FREE, "c"))
    assert "c" in before
    assert [new for old, new in zip(before, after, strict=True) if old != "c"] == [
        old for old in before if old != "c"
    ]


def test_one_that_joins_gets_only_what_it_owns_from_then_on() -> None:
    before = owners_of(QUEUE, COUNT, without(FREE, "c"))
    after = owners_of(QUEUE, COUNT, FREE)
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert moved
    assert set(moved) == {"c"}


def test_what_is_held_stays_with_its_holder() -> None:
    before = owners_of(QUEUE, COUNT, without(FREE, "c"))
    held = {
        name: sum(1 << at for at, owner in enumerate(before) if owner == name)
        for name in without(FREE, "c")
    }
    assert owners_of(QUEUE, COUNT, {**held, "c": 0}) == before


def test_of_two_holders_all_choose_the_same_one() -> None:
    members = {**FREE, "a": 1, "b": 1}
    (first, *_), (second, *_) = (
        owners_of(QUEUE, COUNT, each) for each in (members, dict(reversed(members.items())))
    )
    assert first == second
    assert first in {"a", "b"}


def test_one_that_is_away_keeps_what_it_holds_and_no_more() -> None:
    here = without(FREE, "c")
    held = 0b1011
    owners = owners_of(QUEUE, COUNT, here, {"c": held})
    assert [at for at, owner in enumerate(owners) if owner == "c"] == [0, 1, 3]
    rest = [owner for at, owner in enumerate(owners_of(QUEUE, COUNT, here)) if at not in {0, 1, 3}]
    assert [owner for owner in owners if owner != "c"] == rest


def test_who_holds_it_and_is_here_comes_before_one_that_is_away() -> None:
    assert owners_of(QUEUE, 1, {"a": 0, "b": 1}, {"c": 1}) == ["b"]

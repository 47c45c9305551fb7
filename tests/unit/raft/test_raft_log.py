"""The log: memory, storage, snapshot."""

from __future__ import annotations

import pytest
from shelf import Shelf

from cogwork.raft.entries import ENTRY_OVERHEAD_BYTES, Entry, Kind
from cogwork.raft.log import Log
from cogwork.raft.storage import NoStorage

SIZE = ENTRY_OVERHEAD_BYTES + 10


def entries(first: int, *terms: int) -> list[Entry]:
    return [Entry(first + n, term, Kind.COMMAND, bytes(10)) for n, term in enumerate(terms)]


def log_of(*terms: int) -> Log:
    return Log(0, 0, entries(1, *terms), NoStorage())


def test_an_empty_log_ends_where_its_snapshot_does() -> None:
    log = Log(7, 3, (), NoStorage())
    assert (log.last_index, log.last_term, log.term(7), log.term(6), log.term(8)) == (
        7,
        3,
        3,
        None,
        None,
    )


def test_entries_come_in_order_within_the_bounds() -> None:
    log = log_of(1, 1, 2, 2, 3)
    assert [entry.index for entry in log.between(2, 4, 1 << 20, 10)] == [2, 3, 4]
    assert [entry.index for entry in log.between(2, 5, 2 * SIZE, 10)] == [2, 3]
    assert [entry.index for entry in log.between(2, 5, 1, 10)] == [2]
    assert [entry.index for entry in log.between(2, 5, 1 << 20, 1)] == [2]
    assert log.between(6, 5, 1 << 20, 10) == ()


def test_a_gap_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        log_of(1).extend(entries(3, 1))


def test_cutting_off_leaves_what_is_before() -> None:
    log = log_of(1, 1, 2, 2)
    log.truncate(3)
    assert (log.last_index, log.last_term, log.size_bytes) == (2, 1, 2 * SIZE)


@pytest.mark.parametrize(
    ("own", "index", "term", "agreed"),
    [
        ((1, 1, 1, 4, 4, 4, 4), 10, 6, (7, 4)),
        ((1, 1, 1, 2, 2, 2, 3, 3), 8, 1, (3, 1)),
        ((1, 1, 1, 4, 4, 5, 5, 6, 6, 6), 8, 4, (5, 4)),
        ((5, 5), 2, 1, (0, 0)),
        ((1, 2), 9, 9, (2, 2)),
    ],
)
def test_logs_can_agree_only_where_the_term_is_not_higher(
    own: tuple[int, ...], index: int, term: int, agreed: tuple[int, int]
) -> None:
    assert log_of(*own).agree(index, term) == agreed


def test_what_agrees_may_be_given_up() -> None:
    log = log_of(1, 2, 2)
    log.compact(2)
    assert log.agree(3, 1) == (1, 0)
    assert log.agree(3, 2) == (3, 2)


def test_compacted_entries_are_gone_and_their_last_term_is_known() -> None:
    log = log_of(1, 1, 2, 2)
    log.compact(3)
    assert (log.compacted_index, log.base_index, log.last_index) == (3, 3, 4)
    assert (log.term(3), log.term(2), log.term(4)) == (2, None, 2)
    assert log.between(2, 4, 1 << 20, 10) == []
    assert log.size_bytes == SIZE


def test_a_released_entry_is_read_from_the_storage() -> None:
    kept = entries(1, 1, 1, 2, 2)
    log = Log(0, 0, kept, Shelf(kept))
    log.release(3, SIZE)
    assert (log.base_index, log.compacted_index, log.size_bytes) == (3, 0, SIZE)
    assert log.term(2) == 1
    assert [entry.index for entry in log.between(2, 4, 1 << 20, 10)] == [2, 3, 4]
    assert [entry.index for entry in log.between(1, 2, 1 << 20, 10)] == [1, 2]
    log.compact(2)
    assert (log.term(2), log.term(1), log.term(3)) == (1, None, 2)


def test_the_terms_of_released_entries_are_known_without_a_look_at_the_storage() -> None:
    kept = entries(1, 1, 1, 2, 2, 5, 5)
    shelf = Shelf(kept)
    log = Log(0, 0, kept, shelf)
    for last in (1, 3, 5):
        log.release(last, 0)
    assert [log.term(index) for index in range(8)] == [0, 1, 1, 2, 2, 5, 5, None]
    assert log.agree(5, 4) == (4, 2)
    log.compact(2)
    assert [log.term(index) for index in range(1, 7)] == [None, 1, 2, 2, 5, 5]
    log.compact(4)
    log.release(6, 0)
    assert [log.term(index) for index in range(3, 7)] == [None, 2, 5, 5]
    assert shelf.looked == 0


def test_nothing_is_released_that_the_storage_does_not_have() -> None:
    log = log_of(1, 1, 2)
    log.release(3, 0)
    assert log.base_index == 0


def test_nothing_is_released_that_is_not_applied() -> None:
    kept = entries(1, 1, 1, 2, 2)
    log = Log(0, 0, kept, Shelf(kept))
    log.release(1, 0)
    assert log.base_index == 1


def test_it_begins_with_the_newest_entries_where_the_storage_has_the_others() -> None:
    kept = entries(3, 1, 1, 2, 2)
    log = Log(2, 1, kept[2:], Shelf(kept))
    assert (log.compacted_index, log.base_index, log.last_index) == (2, 4, 6)
    assert [log.term(index) for index in range(1, 8)] == [None, 1, 1, 1, 2, 2, None]


def test_a_snapshot_begins_anew() -> None:
    log = log_of(1, 1)
    log.reset(9, 4)
    assert (log.last_index, log.last_term, log.size_bytes, log.term(9)) == (9, 4, 0, 4)

"""What a producer sends twice, cuts differently, leaves out, or numbers wrongly."""

import pytest

from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import Malformed, OutOfSequence, SequenceReused
from cogwork.plugin.engine.producers import BATCHES_KEPT, Fresh, ProducerTable, Repeated

P = b"producer"


def batch(first: int, *records: bytes, producer: bytes = P) -> Batch:
    return Batch.of(records, producer, first)


def table_with(*batches: Batch, gap: int = 0) -> ProducerTable:
    """A table that has seen batches, with room for other producers' records between them."""
    table = ProducerTable()
    offset = 100
    for each in batches:
        assert table.decide(each) == Fresh(each)
        table.record(each, offset)
        offset += each.count + gap
    return table


def test_a_new_producer_begins_at_zero() -> None:
    table = ProducerTable()
    with pytest.raises(OutOfSequence, match="is 0, not 1") as caught:
        table.decide(batch(1, b"a"))
    assert caught.value.expected == 0
    assert len(table) == 0


def test_a_gap_is_told_with_what_is_expected() -> None:
    with pytest.raises(OutOfSequence) as caught:
        table_with(batch(0, b"a", b"b")).decide(batch(3, b"d"))
    assert caught.value.expected == 2


def test_a_repetition_gets_the_old_place() -> None:
    table = table_with(batch(0, b"a", b"b"), batch(2, b"c"), gap=10)
    assert table.decide(batch(0, b"a", b"b")) == Repeated(100)
    assert table.decide(batch(2, b"c")) == Repeated(112)


def test_a_repetition_may_be_cut_differently() -> None:
    table = table_with(batch(0, b"a", b"b"), batch(2, b"c", b"d"), gap=10)
    assert table.decide(batch(0, b"a", b"b", b"c", b"d")) == Repeated(100)
    assert table.decide(batch(1, b"b")) == Repeated(101)
    assert table.decide(batch(1, b"b", b"c", b"d")) == Repeated(101)


def test_what_is_partly_new_is_cut() -> None:
    table = table_with(batch(0, b"a", b"b"))
    assert table.decide(batch(0, b"a", b"b", b"c")) == Fresh(batch(2, b"c"), 100)
    assert table.decide(batch(1, b"b", b"c")) == Fresh(batch(2, b"c"), 101)


@pytest.mark.parametrize(
    "wrong",
    [
        batch(0, b"a", b"x"),
        batch(2, b"x"),
        batch(0, b"a", b"b", b"x"),
        batch(0, b"a", b"b", b"x", b"d"),
        batch(2, b"x", b"d"),
        batch(1, b"b", b"x"),
    ],
)
def test_a_sequence_that_comes_back_with_another_payload_is_refused(wrong: Batch) -> None:
    with pytest.raises(SequenceReused):
        table_with(batch(0, b"a", b"b"), batch(2, b"c")).decide(wrong)


def test_what_is_long_ago_is_a_repetition_without_a_place() -> None:
    table = table_with(*(batch(i, b"%d" % i) for i in range(BATCHES_KEPT + 1)))
    assert table.decide(batch(0, b"0")) == Repeated(None)
    assert table.decide(batch(1, b"1")) == Repeated(101)


def test_producers_count_for_themselves() -> None:
    table = table_with(batch(0, b"a"))
    other = batch(0, b"z", producer=b"other")
    assert table.decide(other) == Fresh(other)
    assert (table.next_sequence(P), table.next_sequence(b"other")) == (1, 0)


def test_it_tells_whether_it_holds_all_of_a_batch() -> None:
    table = table_with(batch(0, b"a", b"b"))
    assert table.holds(batch(0, b"a"))
    assert table.holds(batch(0, b"a", b"b"))
    assert not table.holds(batch(1, b"b", b"c"))
    assert not table.holds(batch(0, b"a", producer=b"other"))


def test_who_has_not_appended_for_longest_is_forgotten_first() -> None:
    table = ProducerTable(producers_max=2)
    for offset, producer in enumerate((b"a", b"b", b"a", b"c")):
        table.record(batch(table.next_sequence(producer), b".", producer=producer), offset)
    assert len(table) == 2
    assert [table.next_sequence(each) for each in (b"a", b"b", b"c")] == [2, 0, 1]


def test_a_repetition_does_not_save_a_producer_from_being_forgotten() -> None:
    table = ProducerTable(producers_max=2)
    table.record(batch(0, b".", producer=b"a"), 0)
    table.record(batch(0, b".", producer=b"b"), 1)
    assert table.decide(batch(0, b".", producer=b"a")) == Repeated(0)
    table.record(batch(0, b".", producer=b"c"), 2)
    assert table.next_sequence(b"a") == 0


def test_it_can_be_written_down_and_read_back() -> None:
    table = table_with(*(batch(i, b"%d" % i) for i in range(BATCHES_KEPT + 3)))
    table.record(batch(0, b"z", producer=b""), 500)
    again = ProducerTable.from_bytes(table.to_bytes())
    assert again.to_bytes() == table.to_bytes()
    assert again.decide(batch(5, b"5")) == Repeated(105)
    assert again.next_sequence(P) == BATCHES_KEPT + 3


def test_its_octets_do_not_depend_on_how_it_came_to_be() -> None:
    table = ProducerTable()
    for offset, producer in enumerate((b"a", b"b", b"a")):
        table.record(batch(table.next_sequence(producer), b".", producer=producer), offset)
    again = ProducerTable.from_bytes(table.to_bytes())
    for each in (table, again):
        each.record(batch(1, b"!", producer=b"b"), 3)
    assert again.to_bytes() == table.to_bytes()


def test_damaged_octets_are_told() -> None:
    data = table_with(batch(0, b"a"), batch(1, b"b")).to_bytes()
    for length in range(len(data)):
        with pytest.raises(Malformed):
            ProducerTable.from_bytes(data[:length])
    for wrong in (data + b"x", b"\0\0\0\2" + data[4:] * 2, b"\0\0\0\1\1\0p", b"\0\0\0\1\1\x09p"):
        with pytest.raises(Malformed):
            ProducerTable.from_bytes(wrong)

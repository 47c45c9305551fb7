"""Percentiles from buckets, held to the sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from cogwork.bench.histogram import Histogram


@given(st.lists(st.integers(0, 2**40), min_size=1), st.integers(1, 100))
def test_a_percentile_is_within_one_bucket_of_the_true_one(values: list[int], percent: int) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    rank = max(0, -(-len(values) * percent // 100) - 1)
    true = sorted(values)[rank]
    assert abs(histogram.percentile(percent) - true) <= true / 64 + 0.5


def test_without_values_there_is_nothing_to_say() -> None:
    assert Histogram().percentile(50) == 0
    assert Histogram().summary_us() == {}

"""A histogram of powers of two."""

from __future__ import annotations

from cogwork.dataplane.queue.histogram import Histogram


def test_nothing_counted_is_zero() -> None:
    histogram = Histogram()
    assert (histogram.quantile(50), histogram.quantile(99), histogram.maximum) == (0, 0, 0)


def test_a_quantile_is_the_end_of_its_bin_and_never_more_than_the_maximum() -> None:
    histogram = Histogram()
    for value in (*[0] * 50, *[5] * 40, *[20] * 10):
        histogram.add(value)
    assert [histogram.quantile(percent) for percent in (1, 50, 51, 90)] == [0, 0, 7, 7]
    assert (histogram.quantile(91), histogram.quantile(100), histogram.maximum) == (20, 20, 20)


def test_the_largest_value_has_a_bin_too() -> None:
    histogram = Histogram()
    histogram.add(2**64 - 1)
    assert histogram.quantile(100) == histogram.maximum == 2**64 - 1


def test_two_periods_are_told_and_what_is_older_is_forgotten() -> None:
    histogram = Histogram()
    histogram.turn(1000.0)
    histogram.add(9)
    histogram.turn(1060.0)
    histogram.add(3)
    histogram.turn(1119.0)
    assert histogram.maximum == 9
    histogram.turn(1120.0)
    assert histogram.maximum == 3


def test_a_period_without_values_does_not_end() -> None:
    histogram = Histogram()
    histogram.add(9)
    for minute in range(1, 10):
        histogram.turn(60.0 * minute)
    assert histogram.quantile(50) == histogram.maximum == 9

"""What filters of a query say about which records need not be read.

Narrowing is only ever a hint: Spark applies every filter itself afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from cogwork.pipeline.spark.read_options import Place
from cogwork.pipeline.spark.words import us_of

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from cogwork.pipeline.spark.bounds import StreamBounds
    from cogwork.pipeline.spark.ranges import Range

__all__ = ("Narrowing",)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What is known of the records that are wanted.

    Attributes:
        streams: The only ones; None for all.
        start: No offset below this one.
        end: None from this one on; None for no such limit.
        start_us: No time before this one.
        end_us: No time after this one.
    """

    streams: frozenset[str] | None = None
    start: int = 0
    end: int | None = None
    start_us: int | None = None
    end_us: int | None = None

    def with_filter(self, filter_: Filter) -> Narrowing:
        """Return what is known with one filter more."""
        column = getattr(filter_, "attribute", ())
        value: Any = getattr(filter_, "value", None)
        if column == ("stream",):
            return self._with_stream(filter_, value)
        if column == ("offset",) and isinstance(value, int):
            return self._with_offset(filter_, value)
        if column == ("time",) and isinstance(value, datetime):
            return self._with_time(filter_, us_of(value))
        return self

    def _with_stream(self, filter_: Filter, value: object) -> Narrowing:
        if isinstance(filter_, EqualTo):
            names = frozenset({str(value)})
        elif isinstance(filter_, In) and isinstance(value, tuple | list):
            names = frozenset(map(str, value))
        else:
            return self
        return replace(self, streams=names if self.streams is None else names & self.streams)

    def _with_offset(self, filter_: Filter, value: int) -> Narrowing:
        start, end = self.start, self.end
        if isinstance(filter_, EqualTo | GreaterThanOrEqual):
            start = max(start, value)
        if isinstance(filter_, GreaterThan):
            start = max(start, value + 1)
        if isinstance(filter_, EqualTo | LessThanOrEqual):
            end = value + 1 if end is None else min(end, value + 1)
        if isinstance(filter_, LessThan):
            end = value if end is None else min(end, value)
        return replace(self, start=start, end=end)

    def _with_time(self, filter_: Filter, value_us: int) -> Narrowing:
        start, end = self.start_us, self.end_us
        if isinstance(filter_, EqualTo | GreaterThan | GreaterThanOrEqual):
            start = value_us if start is None else max(start, value_us)
        if isinstance(filter_, EqualTo | LessThan | LessThanOrEqual):
            end = value_us if end is None else min(end, value_us)
        return replace(self, start_us=start, end_us=end)

    def applied(self, ranges: list[Range], bounds: StreamBounds) -> list[Range]:
        """Return what is left of ranges."""
        starts = _offsets(bounds, self.start_us)
        ends = _offsets(bounds, None if self.end_us is None else self.end_us + 1)
        narrowed = []
        for each in ranges:
            if self.streams is not None and each.stream not in self.streams:
                continue
            start = max(each.start, self.start, starts.get(each.stream, 0))
            end = min(each.end, ends.get(each.stream, each.end))
            end = end if self.end is None else min(end, self.end)
            narrowed.append(each._replace(start=start, end=max(start, end)))
        return narrowed


def _offsets(bounds: StreamBounds, time_us: int | None) -> dict[str, int]:
    return {} if time_us is None else bounds.places(Place(0, time_us=time_us))

"""The reader of a streaming query: offsets on the driver, ranges in the workers.

Theory of operation. Spark keeps, in the checkpoint, an offset for each stream: that of the record
which is next, and of the first one where no batch before says it (`query_offsets`). One process
beside the driver makes all decisions; `latestOffset` says how far a trigger goes, by what the
streams hold and what the user allows. Spark takes whatever it is told, backwards too: so the offset
that it brings is compared with the bounds each time.

A position is reported by the listener of the query, not by `commit`: Spark commits a batch when it
plans the next one, and the last one never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from cogwork.pipeline.arrow import ArrowError
from cogwork.pipeline.spark.bounds import StreamBounds
from cogwork.pipeline.spark.columns import wanted_columns
from cogwork.pipeline.spark.errors import SourceError
from cogwork.pipeline.spark.query_offsets import (
    beginning_at,
    is_beginning,
    offset_of,
    positions_in,
    starts_in,
)
from cogwork.pipeline.spark.ranges import Range, shares
from cogwork.pipeline.spark.source import RangePartition, partitions_of, read_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from cogwork.pipeline.arrow import Bounds
    from cogwork.pipeline.spark.query_offsets import Offset
    from cogwork.pipeline.spark.read_options import ReadOptions

__all__ = ("CogworkStreamReader",)


class CogworkStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads streams trigger by trigger."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Connect nowhere.

        Args:
            options: The user's.
            schema: The columns that are wanted.
        """
        self._options = options
        self._schema = schema
        self._columns = wanted_columns(schema)
        self._forget()

    def _forget(self) -> None:
        self._asked: StreamBounds | None = None
        self._initial: Offset | None = None
        self._target: dict[str, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the driver's connection out of what workers get."""
        return {"_options": self._options, "_schema": self._schema, "_columns": self._columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    @property
    def _bounds(self) -> StreamBounds:
        if self._asked is None:
            self._asked = StreamBounds(self._options)
        return self._asked

    # -- on the driver

    def initialOffset(self) -> Offset:
        """Return where a query without a checkpoint starts; the same each time it is asked."""
        if self._initial is None:
            bounds = self._bounds
            try:
                found = bounds.of_all()
                places = bounds.places(self._options.start, found)
                self._initial = beginning_at(
                    {
                        name: bounds.kept(Range(name, at, at), found[name]).start
                        for name, at in places.items()
                    }
                )
            except ArrowError as error:
                raise SourceError(str(error)) from None
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what a trigger reads at most."""
        if self._options.rows_max is not None:
            return ReadMaxRows(self._options.rows_max)
        if self._options.bytes_max is not None:
            return ReadMaxBytes(self._options.bytes_max)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember what there is now: a query that ends reads this far."""
        self._target = self._heads()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return how far the next trigger reads, and from where, as far as `start` does not say.

        Raises:
            DataLoss: What would be next is not there.
            SourceError: A stream cannot be read.
        """
        try:
            found = self._bounds.of_all()
            starts = self._bounds.starts_of(positions_in(start), found)
            heads = self._targets(found)
            lags = {name: max(0, heads.get(name, at) - at) for name, at in starts.items()}
            taken = self._limited(starts, lags, limit)
        except ArrowError as error:
            raise SourceError(str(error)) from None
        ends = {name: at + taken[name] for name, at in starts.items()}
        return self._end_of(start, starts, ends)

    def _targets(self, found: Mapping[str, Bounds]) -> dict[str, int]:
        """Return how far streams may be read: to their ends, or those that there were."""
        if self._target is None:
            return {name: each.next for name, each in found.items()}
        return {
            name: min(at, found[name].next) for name, at in self._target.items() if name in found
        }

    def _end_of(self, start: Offset, starts: dict[str, int], ends: dict[str, int]) -> Offset:
        """Return what Spark keeps of a batch; `start` itself where there is none to be run.

        Spark compares the two as text, and would run empty batches.
        """
        is_first = is_beginning(start)
        new = {name: at for name, at in starts.items() if is_first or start.get(name) != at}
        if not new and ends == positions_in(start):
            return start
        return offset_of(ends, new)

    def reportLatestOffset(self) -> dict[str, int]:
        """Return where the streams end, for the progress of the query."""
        return self._heads()

    def _heads(self) -> dict[str, int]:
        try:
            return {name: found.next for name, found in self._bounds.of_all().items()}
        except ArrowError as error:
            raise SourceError(str(error)) from None

    def _limited(
        self, starts: dict[str, int], lags: dict[str, int], limit: ReadLimit
    ) -> dict[str, int]:
        if isinstance(limit, ReadAllAvailable):
            return lags
        if isinstance(limit, ReadMaxRows):
            # Whatever is shared out: what is planned beyond a stream's end is never read.
            of_each = shares(lags, limit.max_rows)
            lags = {name: min(lag, of_each[name]) for name, lag in lags.items()}
        bytes_max = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.bytes_max
        if bytes_max is None:
            return lags
        sizes = {
            name: self._bounds.row_size_bytes(name, starts[name], starts[name] + lag)
            for name, lag in lags.items()
            if lag > 0
        }
        of_each = shares({name: int(lags[name] * size) for name, size in sizes.items()}, bytes_max)
        return {
            name: min(lag, max(1, int(of_each[name] / sizes[name]))) if lag > 0 else 0
            for name, lag in lags.items()
        }

    def partitions(self, start: Offset, end: Offset) -> list[RangePartition]:
        """Cut a trigger's ranges into tasks.

        Raises:
            DataLoss: Records of the range are gone.
        """
        if start == end:  # the starts in it are those of an earlier batch
            return []
        ranges = []
        starts = positions_in(start) | starts_in(end)
        try:
            bounds = self._bounds.of_all()
            for name, until in positions_in(end).items():
                if name not in bounds and not self._options.fails_on_loss:
                    continue
                found = bounds[name] if name in bounds else self._gone(name)
                at = starts.get(name, found.first)
                if at > max(until, found.next) and not self._options.fails_on_loss:
                    at = found.first  # another stream of the same name, in an older checkpoint
                if at < until:
                    ranges.append(self._bounds.kept(Range(name, at, until), found))
        except ArrowError as error:
            raise SourceError(str(error)) from None
        return partitions_of(ranges, self._options)

    def _gone(self, name: str) -> Any:  # noqa: ANN401 # it never returns
        raise SourceError(f"there is no stream {name} any more (failOnDataLoss)")

    def stop(self) -> None:
        """Let the connection go."""
        if self._asked is not None:
            self._asked.close()
            self._asked = None

    # -- in a worker

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one range."""
        return read_range(self._options, self._schema, self._columns, partition)

"""The books of a queue's items: what became of each, and in which order they went out.

Theory of operation. Runs in Spark's workers, over items sorted by who wrote of them and by the
order in which they went out. Items that are as they should be are counted, a batch at a time; the
others are counted by what is wrong with them, and some of them are kept as suspects. The positions
go through the same `Disorder` as in a container, whose memory is bounded.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from cogwork.dataplane.disorder import Disorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray
    from pyspark.sql import Row

__all__ = ("SCHEMA", "Books", "Settings", "keep_books")

FIELD_BITS = 20
FIELD = (1 << FIELD_BITS) - 1
"""A code counts acceptances, confirmed outcomes, and other last ones, in so many bits each."""

COUNTS = ("items", "processed", "ended", "open", "held", "lost", "twice", "unknown", "again")
ORDER = ("measured", "disorder_p50", "disorder_p99", "disorder_max")

SUSPECTS = ("lost", "twice", "unknown", "again")
"""The counts of items that are not as they should be."""

COLUMNS = ("writer", "hash", *COUNTS, *ORDER)

SCHEMA = ", ".join(f"{name} bigint" for name in COLUMNS)
"""A suspect is a row with its `hash`; the counts of a writer are a row without."""

Batch = dict[str, "NDArray[np.int64]"]


class Settings(NamedTuple):
    """What is counted as lost, and how much is kept.

    Attributes:
        lost_before_us: An item that is open since before this time is lost.
        suspects_max: How many suspects of each kind are kept for each writer.
    """

    lost_before_us: int
    suspects_max: int


class Shard:
    """What is counted of the items that one writer wrote of."""

    def __init__(self, writer: int) -> None:
        self.writer = writer
        self.counts = dict.fromkeys(COUNTS, 0)
        self.suspects: dict[str, list[int]] = {name: [] for name in SUSPECTS}
        self.disorder = Disorder()
        self.measured = 0

    def add(self, batch: Batch, settings: Settings) -> None:
        """Counts items, and keeps some of the suspects."""
        masks = _judge(batch, settings.lost_before_us)
        for name, mask in masks.items():
            self.counts[name] += int(mask.sum())
        for name in SUSPECTS:
            room = settings.suspects_max - len(self.suspects[name])
            if room > 0 and masks[name].any():
                self.suspects[name] += batch["hash"][masks[name]][:room].tolist()
        self._measure(batch)

    def _measure(self, batch: Batch) -> None:
        """Takes the items that went out, of those that came and went at the same container."""
        known = (batch["came"] > 0) & (batch["went"] > 0) & (batch["writer"] == batch["other"])
        numbers = batch["came"][known].tolist()
        take = self.disorder.take
        for number in numbers:
            take(number)
        self.measured += len(numbers)

    def rows(self) -> list[dict[str, int | None]]:
        """Returns the counts and the suspects as rows of `SCHEMA`."""
        histogram = self.disorder.histogram
        order = (
            self.measured,
            histogram.quantile(50) if self.measured else 0,
            histogram.quantile(99) if self.measured else 0,
            histogram.maximum if self.measured else 0,
        )
        counted: dict[str, int | None] = {
            "writer": self.writer,
            **self.counts,
            **dict(zip(ORDER, order, strict=True)),
        }
        hashes = dict.fromkeys(each for name in SUSPECTS for each in self.suspects[name])
        return [counted, *(dict[str, int | None](writer=self.writer, hash=each) for each in hashes)]


def _judge(batch: Batch, lost_before_us: int) -> dict[str, NDArray[np.bool_]]:
    """Says of each item what it counts as."""
    code, is_held = batch["code"], batch["held"] > 0
    came, confirmed = code & FIELD, code >> FIELD_BITS & FIELD
    ended = code >> 2 * FIELD_BITS
    last = confirmed + ended
    is_open = (came > 0) & (last == 0)
    return {
        "items": came > 0,
        "processed": confirmed > 0,
        "ended": ended > 0,
        "open": is_open,
        "held": is_open & is_held,
        "lost": is_open & ~is_held & (batch["time"] < lost_before_us),
        "twice": last > 1,
        "unknown": (came == 0) & (last > 0),
        "again": came > 1,
    }


def keep_books(
    settings: Settings,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Makes the function that Spark calls with the batches of a task.

    Args:
        settings: What is counted as lost, and how much is kept.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shard: Shard | None = None
        for batch in batches:
            for writer, part in _by_writer(batch):
                if shard is None or shard.writer != writer:
                    if shard is not None:
                        yield _batch_of(shard.rows())
                    shard = Shard(writer)
                shard.add(part, settings)
        if shard is not None:
            yield _batch_of(shard.rows())

    return run


def _by_writer(batch: pa.RecordBatch) -> Iterator[tuple[int, Batch]]:
    columns = {name: _filled(batch, name) for name in batch.schema.names}
    writers = columns["writer"]
    bounds = [0, *(np.flatnonzero(np.diff(writers)) + 1).tolist(), len(writers)]
    for start, end in pairwise(bounds):
        if end > start:
            yield int(writers[start]), {name: each[start:end] for name, each in columns.items()}


def _filled(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    column = batch.column(name)
    if column.null_count:
        column = column.fill_null(0)
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    return numbers


def _batch_of(rows: list[dict[str, int | None]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: pa.array([row.get(name) for row in rows], pa.int64()) for name in COLUMNS}
    )


class Books(NamedTuple):
    """The counts of some writers together.

    Attributes:
        shards: The counts of each.
        suspects: The hashes of items that need a second look.
    """

    shards: list[dict[str, int]]
    suspects: list[int]

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> Self:
        """Takes what the workers said."""
        shards, suspects = list[dict[str, int]](), list[int]()
        for row in rows:
            if row["hash"] is None:
                shards.append(row.asDict())
            else:
                suspects.append(row["hash"])
        return cls(shards, suspects)

    def of(self, writers: set[int]) -> Books:
        """Returns those of some writers."""
        return Books([each for each in self.shards if each["writer"] in writers], [])

    def total(self, name: str) -> int:
        """Adds up one of the counts."""
        return sum(each[name] for each in self.shards)

    def greatest(self, name: str) -> int:
        """Returns the greatest value of one of the measures of order."""
        return max((each[name] for each in self.shards), default=0)

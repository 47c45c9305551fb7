"""The books of a queue's items: what became of each, and in which order they went out.

Theory of operation. Runs in Spark's workers, over items sorted by shard and by the order in which
they went out. Items that are as they should be are counted, a batch at a time; the others are
counted by what is wrong with them, and some of them are kept as suspects. The positions
go through the same `Disorder` as in a container, whose memory is bounded.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from cogwork.audit.events import LAST
from cogwork.dataplane.disorder import Disorder
from cogwork.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray
    from pyspark.sql import Row

__all__ = (
    "AGAIN",
    "BACK",
    "CAME",
    "HELD",
    "OUTCOMES",
    "SCHEMA",
    "UNTOLD",
    "Books",
    "Settings",
    "keep_books",
)

CAME, BACK, HELD, AGAIN, UNTOLD = 1, *(1 << len(LAST) + at for at in (1, 2, 3, 4))
"""Bits of an item's code; after the first is one for each outcome after which it is gone. The last
two say that it was gone in two ways, and that an event of it did not say all."""

OUTCOMES = {name: 2 << at for at, name in enumerate(LAST)}
GONE = sum(OUTCOMES.values())

COUNTS = ("items", *LAST, "given_back", "open", "held", "lost", "twice", "unaccepted", "untold")
ORDER = ("sample", "measured", "disorder_p50", "disorder_p99", "disorder_max")
"""What is told of a shard besides counts; `sample` is the offset of one of its records."""

SUSPECTS = ("lost", "twice", "unaccepted")
"""The counts of items that are not as they should be."""

COLUMNS = ("shard", "hash", *COUNTS, *ORDER)

SCHEMA = ", ".join(f"{name} bigint" for name in COLUMNS)
"""A suspect is a row with its `hash`; the counts of a shard are a row without."""

Batch = dict[str, "NDArray[np.int64]"]


class Settings(NamedTuple):
    """What is counted as lost, and how much is kept.

    Attributes:
        lost_before: An item whose last event has a lower offset than this should not be open.
        suspects_max: How many suspects of each kind are kept of each shard.
    """

    lost_before: int
    suspects_max: int


class Shard:
    """What is counted of the items of one shard."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.sample = 0
        self.counts = dict.fromkeys(COUNTS, 0)
        self.suspects: dict[str, list[int]] = {name: [] for name in SUSPECTS}
        self.disorder = Disorder()
        self.measured = 0

    def add(self, batch: Batch, settings: Settings) -> None:
        """Counts items, and keeps some of the suspects."""
        masks = _judge(batch, settings.lost_before)
        self.sample = int(batch["at"][0])
        for name, mask in masks.items():
            self.counts[name] += int(mask.sum())
        for name in SUSPECTS:
            room = settings.suspects_max - len(self.suspects[name])
            if room > 0 and masks[name].any():
                self.suspects[name] += batch["hash"][masks[name]][:room].tolist()
        self._measure(batch)

    def _measure(self, batch: Batch) -> None:
        """Takes the items of which it is known when they came and when they went out."""
        known = (batch["came"] > 0) & (batch["went"] > 0)
        numbers = batch["came"][known]
        self.disorder.take_all(numbers)
        self.measured += len(numbers)

    def rows(self) -> list[dict[str, int | None]]:
        """Returns the counts and the suspects as rows of `SCHEMA`."""
        histogram = self.disorder.histogram
        order = (
            self.sample,
            self.measured,
            histogram.quantile(50) if self.measured else 0,
            histogram.quantile(99) if self.measured else 0,
            histogram.maximum if self.measured else 0,
        )
        counted = {"shard": self.shard, **self.counts, **dict(zip(ORDER, order, strict=True))}
        hashes = dict.fromkeys(each for name in SUSPECTS for each in self.suspects[name])
        rows: list[dict[str, int | None]] = [{**counted}]
        return rows + [{"shard": self.shard, "hash": each} for each in hashes]


def _judge(batch: Batch, lost_before: int) -> dict[str, NDArray[np.bool_]]:
    """Says of each item what it counts as."""
    code = batch["code"]
    came, is_gone, is_held = (code & bits > 0 for bits in (CAME, GONE, HELD))
    is_open = came & ~is_gone
    return {
        "items": came,
        **{name: code & bit > 0 for name, bit in OUTCOMES.items()},
        "given_back": code & BACK > 0,
        "open": is_open,
        "held": is_open & is_held,
        "lost": is_open & ~is_held & (batch["at"] < lost_before),
        "twice": code & AGAIN > 0,
        "unaccepted": ~came & is_gone,
        "untold": code & UNTOLD > 0,
    }


def keep_books(
    settings: Settings,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Makes the function that Spark calls with the batches of a task.

    Args:
        settings: What is counted as lost, and how much is kept.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_loaded()
        shard: Shard | None = None
        for batch in batches:
            for number, part in _by_shard(batch):
                if shard is None or shard.shard != number:
                    if shard is not None:
                        yield _batch_of(shard.rows())
                    shard = Shard(number)
                shard.add(part, settings)
        if shard is not None:
            yield _batch_of(shard.rows())

    return run


def _by_shard(batch: pa.RecordBatch) -> Iterator[tuple[int, Batch]]:
    columns = {name: _filled(batch, name) for name in batch.schema.names}
    shards = columns["shard"]
    bounds = [0, *(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(shards)]
    for start, end in pairwise(bounds):
        if end > start:
            yield int(shards[start]), {name: each[start:end] for name, each in columns.items()}


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
    """The counts of some shards together.

    Attributes:
        shards: The counts of each, by its hash.
        suspects: The hashes of items that need a second look.
    """

    shards: dict[int, dict[str, int]]
    suspects: list[int]

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> Self:
        """Takes what the workers said."""
        shards, suspects = dict[int, dict[str, int]](), list[int]()
        for row in rows:
            if row["hash"] is None:
                shards[row["shard"]] = row.asDict()
            else:
                suspects.append(row["hash"])
        return cls(shards, suspects)

    def of(self, shards: Iterable[int]) -> Books:
        """Returns those of some shards."""
        return Books({each: self.shards[each] for each in shards}, [])

    def total(self, name: str) -> int:
        """Adds up one of the counts."""
        return sum(each[name] for each in self.shards.values())

    def greatest(self, name: str) -> int:
        """Returns the greatest value of one of the measures of order."""
        return max((each[name] for each in self.shards.values()), default=0)

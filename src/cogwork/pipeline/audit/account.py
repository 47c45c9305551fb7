"""The account of queues: what became of their items, and in which order these went out.

Theory of operation. Runs in Spark's workers, over what was made of the parts of all items
(`cogwork.pipeline.audit.evaluation`), sorted by shard, and the chunks of a shard by their first
items. These are as many sorted rows of places as there are parts; they are merged as they come, and
go through the same `Disorder` as in a container. Its memory is bounded, and so is what waits to be
merged: about a chunk of each part.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from cogwork.dataplane.queue.disorder import Disorder
from cogwork.pipeline.audit.evaluation import COUNTED, COUNTS, PLACED, Settings
from cogwork.pipeline.audit.items import NEVER
from cogwork.pipeline.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray
    from pyspark.sql import Row

    Table = NDArray[np.int64]

__all__ = ("SCHEMA", "Account", "keep_account")

ORDER = ("sample", "measured", "disorder_p50", "disorder_p99", "disorder_max")
"""What is told of a shard besides counts; `sample` is the offset of one of its records."""

COLUMNS = ("shard", "hash", *COUNTS, *ORDER)

SCHEMA = ", ".join(f"{name} bigint" for name in COLUMNS)
"""A possible violation is a row with its `hash`; the counts of a shard are a row without."""

MERGED_ITEMS = 1 << 18
"""Items whose places are merged at a time, at least."""


class Shard:
    """What is counted of the items of one shard."""

    def __init__(self, shard: int, violations_max: int) -> None:
        self.shard = shard
        self.violations_max = violations_max
        self.sample: tuple[int, ...] = (NEVER,)
        self.counts = np.zeros(len(COUNTS), np.int64)
        self.violations: dict[int, list[int]] = {}
        self.disorder = Disorder()
        self.measured = 0
        self._waiting: list[Table] = []
        self._waiting_items = 0
        self._room_items = MERGED_ITEMS

    def add(self, kind: int, first: int, numbers: Table) -> None:
        """Add what was made of a part of the items; place in the order of their first one."""
        if kind == COUNTED:
            self.counts += numbers[: len(COUNTS)]
            self.sample = min(self.sample, tuple(numbers[len(COUNTS) :].tolist()))
        elif kind == PLACED:
            if self._waiting_items >= self._room_items:
                self._merge(first)
            self._waiting.append(numbers.reshape(2, -1))
            self._waiting_items += len(numbers) // 2
        else:
            found = self.violations.setdefault(kind, [])
            found += numbers.tolist()[: self.violations_max - len(found)]

    def _merge(self, before: int) -> None:
        """Take the items that went out before one that comes next."""
        places = np.concatenate(self._waiting, axis=1)
        places = places[:, np.argsort(places[0], kind="stable")]
        end = int(np.searchsorted(places[0], before))
        self.disorder.take_all(np.ascontiguousarray(places[1][:end]))
        self.measured += end
        self._waiting = [places[:, end:]]
        self._waiting_items = places.shape[1] - end
        self._room_items = max(MERGED_ITEMS, 2 * self._waiting_items)

    def rows(self) -> list[dict[str, int | None]]:
        """Return the counts and the possible violations as rows of `SCHEMA`."""
        if self._waiting:
            self._merge(NEVER)
        histogram = self.disorder.histogram
        order = (
            self.sample[-1],
            self.measured,
            histogram.quantile(50) if self.measured else 0,
            histogram.quantile(99) if self.measured else 0,
            histogram.maximum if self.measured else 0,
        )
        counts = zip(COUNTS, self.counts.tolist(), strict=True)
        counted = {"shard": self.shard, **dict(counts), **dict(zip(ORDER, order, strict=True))}
        hashes = dict.fromkeys(each for found in self.violations.values() for each in found)
        rows: list[dict[str, int | None]] = [{**counted}]
        return rows + [{"shard": self.shard, "hash": each} for each in hashes]


def keep_account(
    settings: Settings,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that adds up rows of `EVALUATED`, sorted by shard and first item.

    Args:
        settings: What is counted as lost, and how much is kept.
    """
    return partial(_keep_account, settings)


def _keep_account(
    settings: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    keep_loaded()
    shard: Shard | None = None
    for batch in batches:
        numbers = [batch.column(name).to_pylist() for name in ("shard", "kind", "first")]
        for number, kind, first, octets in zip(*numbers, batch.column("numbers"), strict=True):
            if shard is None or shard.shard != number:
                if shard is not None:
                    yield _batch_of(shard.rows())
                shard = Shard(number, settings.violations_max)
            shard.add(kind, first, np.frombuffer(octets.as_buffer(), np.int64))
    if shard is not None:
        yield _batch_of(shard.rows())


def _batch_of(rows: list[dict[str, int | None]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: pa.array([row.get(name) for row in rows], pa.int64()) for name in COLUMNS}
    )


class Account(NamedTuple):
    """The counts of some shards together.

    Attributes:
        shards: The counts of each, by its hash.
        violations: The hashes of items that may be violations and are read again.
    """

    shards: dict[int, dict[str, int]]
    violations: list[int]

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> Self:
        """Take what the workers said."""
        shards, violations = dict[int, dict[str, int]](), list[int]()
        for row in rows:
            if row["hash"] is None:
                shards[row["shard"]] = row.asDict()
            else:
                violations.append(row["hash"])
        return cls(shards, violations)

    def of(self, shards: Iterable[int]) -> Account:
        """Return those of some shards."""
        return Account({each: self.shards[each] for each in shards}, [])

    def total(self, name: str) -> int:
        """Add up one of the counts."""
        return sum(each[name] for each in self.shards.values())

    def greatest(self, name: str) -> int:
        """Return the greatest value of one of the measures of order."""
        return max((each[name] for each in self.shards.values()), default=0)

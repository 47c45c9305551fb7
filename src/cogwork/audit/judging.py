"""What became of the items of queues: a part of all items, which one task judges.

Theory of operation. All that is known of the items of a part is there; so each is judged. What is
as it should be is counted by shards; the others are counted by what is wrong with them, and some of
these are kept as suspects. The places of the items are sorted by when they went out, and cut into
chunks, for `cogwork.audit.books` to merge.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from cogwork.audit.events import LAST
from cogwork.audit.items import (
    AGAIN,
    AT,
    BACK,
    CAME,
    CAME_AT,
    CODE,
    HASH,
    HELD,
    NEVER,
    NOT_YET,
    OUTCOMES,
    SHARD,
    UNTOLD,
    WENT_AT,
    brought_together,
    unpacked,
)
from cogwork.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    Table = NDArray[np.int64]
    Judged = tuple[int, int, Table]

__all__ = ("COUNTED", "COUNTS", "JUDGED", "PLACED", "Settings", "judge")

GONE = sum(OUTCOMES.values())

COUNTS = ("items", *LAST, "given_back", "open", "held", "lost", "twice", "unaccepted", "untold")
SUSPECTS = ("lost", "twice", "unaccepted")
"""The counts of items that are not as they should be."""

COUNTED, PLACED, SUSPECTED = range(3)
"""Kinds of rows that are made of a part of a shard's items: their counts; the places of some, when
they went out and when they had come; the hashes of suspects, each kind of them with one more."""

JUDGED = "shard bigint, kind int, first bigint, numbers binary"

CHUNK_ITEMS = 8192
"""Items whose places are cut off at a time."""


class Settings(NamedTuple):
    """What is counted as lost, and how much is kept.

    Attributes:
        lost_before: An item whose last event has a lower offset than this should not be open.
        suspects_max: How many suspects of each kind are kept of each shard.
    """

    lost_before: int
    suspects_max: int


def judge(
    settings: Settings,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Makes the function that judges the items of a part, and makes rows of `JUDGED`.

    Args:
        settings: What is counted as lost, and how much is kept.
    """
    return partial(_judge_part, settings)


def _judge_part(settings: Settings, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    keep_loaded()
    tables = unpacked(batches)
    if not tables:
        return
    table = brought_together(tables)
    del tables
    table[CAME_AT][table[CAME_AT] == NEVER] = 0
    table[WENT_AT][table[WENT_AT] == NEVER] = 0
    table = table[:, np.lexsort((table[WENT_AT], table[SHARD]))]
    shards = table[SHARD]
    bounds = [0, *(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(shards)]
    for start, end in pairwise(bounds):
        part = table[:, start:end]
        yield _judged([*_counted(part, settings), *_chunks(part)], int(shards[start]))


def _counted(items: Table, settings: Settings) -> Iterator[Judged]:
    """Counts the items of one shard, and names those that need a second look."""
    masks = _verdicts(items, settings.lost_before)
    counts = [int(masks[name].sum()) for name in COUNTS]
    yield COUNTED, NOT_YET, np.array([*counts, items[AT][0]])
    for at, name in enumerate(SUSPECTS):
        hashes = items[HASH][masks[name]][: settings.suspects_max]
        if len(hashes):
            yield SUSPECTED + at, NOT_YET, hashes


def _chunks(items: Table) -> Iterator[Judged]:
    """Cuts the places of items that are known to have come and gone."""
    known = (items[CAME_AT] > 0) & (items[WENT_AT] > 0)
    places = items[[WENT_AT, CAME_AT]][:, known]
    for start in range(0, places.shape[1], CHUNK_ITEMS):
        chunk = places[:, start : start + CHUNK_ITEMS]
        yield PLACED, int(chunk[0][0]), chunk


def _judged(rows: list[Judged], shard: int) -> pa.RecordBatch:
    kinds, firsts, numbers = zip(*rows, strict=True)
    columns = {
        "shard": pa.array([shard] * len(rows), pa.int64()),
        "kind": pa.array(kinds, pa.int32()),
        "first": pa.array(firsts, pa.int64()),
        "numbers": pa.array([each.tobytes() for each in numbers], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _verdicts(items: Table, lost_before: int) -> dict[str, NDArray[np.bool_]]:
    """Says of each item what it counts as."""
    code = items[CODE]
    came, is_gone, is_held = (code & bits > 0 for bits in (CAME, GONE, HELD))
    is_open = came & ~is_gone
    return {
        "items": came,
        **{name: code & bit > 0 for name, bit in OUTCOMES.items()},
        "given_back": code & BACK > 0,
        "open": is_open,
        "held": is_open & is_held,
        "lost": is_open & ~is_held & (items[AT] < lost_before),
        "twice": code & AGAIN > 0,
        "unaccepted": ~came & is_gone,
        "untold": code & UNTOLD > 0,
    }

"""Items of queues: what is known of each, as eight numbers, and how that is brought together.

Theory of operation. Of two things that are known of an item, the bits are joined, the ends are the
first and the last one, and the places the lowest: in whatever order things are brought together,
the same comes out. A table of items has a row for each of the eight numbers. Divided by the hashes
of its items it goes from task to task as octets, so that Spark sees one value for many items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cogwork.pipeline.audit.events import LAST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Table = NDArray[np.int64]

__all__ = (
    "AGAIN",
    "AT",
    "BACK",
    "CAME",
    "CAME_AT",
    "CODE",
    "COLUMNS",
    "FIRST_END",
    "HASH",
    "HELD",
    "LAST_END",
    "NEVER",
    "NOT_YET",
    "OUTCOMES",
    "PACKED",
    "SHARD",
    "UNTOLD",
    "WENT_AT",
    "brought_together",
    "merged",
    "packed",
    "unpacked",
)

CAME, BACK, HELD, AGAIN, UNTOLD = 1, *(1 << len(LAST) + at for at in (1, 2, 3, 4))
"""Bits of an item's code; after the first is one for each outcome after which it is gone. The last
two say that it was gone in two ways, and that an event of it did not say all."""

OUTCOMES = {name: 2 << at for at, name in enumerate(LAST)}

NEVER, NOT_YET = np.iinfo(np.int64).max, np.iinfo(np.int64).min

COLUMNS = ("hash", "code", "first_end", "last_end", "came_at", "went_at", "shard", "at")
HASH, CODE, FIRST_END, LAST_END, CAME_AT, WENT_AT, SHARD, AT = range(len(COLUMNS))
"""A table's rows: the second is what happened, in bits; the last is the offset of the last event. A
place or an end that is not there is one that no other is less than; a last end, greater than."""

JOINED = (
    (CODE, np.bitwise_or),
    (FIRST_END, np.minimum),
    (LAST_END, np.maximum),
    (CAME_AT, np.minimum),
    (WENT_AT, np.minimum),
    (SHARD, np.minimum),
    (AT, np.maximum),
)

PIECE_ITEMS = 1 << 15
"""Items that are brought together at a time: two mebibytes."""

PACKED = "part int, items binary"


def brought_together(tables: Sequence[Table]) -> Table:
    """Make one table, sorted by hash, in which each hash is there once."""
    table = tables[0] if len(tables) == 1 else np.concatenate(tables, axis=1)
    order = np.argsort(table[HASH])
    hashes = table[HASH][order]
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])) if len(hashes) else order
    joined = np.empty((len(COLUMNS), len(starts)), np.int64)
    joined[HASH] = hashes[starts]
    for row, join in JOINED:
        joined[row] = join.reduceat(table[row][order], starts) if len(starts) else ()
    joined[CODE] |= np.where(joined[FIRST_END] < joined[LAST_END], AGAIN, 0)
    return joined


def merged(tables: Sequence[Table]) -> Iterator[Table]:
    """Bring sorted tables together, in pieces that stay in a processor's cache.

    Args:
        tables: As `brought_together` makes them.
    """
    if not tables:
        return
    longest = max(tables, key=lambda table: table.shape[1])[HASH]
    pieces = -(-sum(table.shape[1] for table in tables) // PIECE_ITEMS)
    cuts = longest[[len(longest) * at // pieces for at in range(1, pieces)]]
    ends = [[0, *np.searchsorted(table[HASH], cuts).tolist(), table.shape[1]] for table in tables]
    for at in range(pieces):
        parts = [table[:, end[at] : end[at + 1]] for table, end in zip(tables, ends, strict=True)]
        if any(part.shape[1] for part in parts):
            yield brought_together(parts)


def packed(table: Table, parts: int) -> pa.RecordBatch:
    """Divide a sorted table, so that each part has all of its hashes."""
    firsts = [(number << 64) // parts - (1 << 63) for number in range(parts)]
    ends = [*np.searchsorted(table[HASH], np.array(firsts, np.int64)).tolist(), table.shape[1]]
    filled = [part for part in range(parts) if ends[part] < ends[part + 1]]
    items = [table[:, ends[part] : ends[part + 1]].tobytes() for part in filled]
    return pa.record_batch(
        [pa.array(filled, pa.int32()), pa.array(items, pa.binary())], ["part", "items"]
    )


def unpacked(batches: Iterable[pa.RecordBatch]) -> list[Table]:
    """Take tables out of rows of `PACKED`."""
    return [
        np.frombuffer(items.as_buffer(), np.int64).reshape(len(COLUMNS), -1)
        for batch in batches
        for items in batch.column("items")
    ]

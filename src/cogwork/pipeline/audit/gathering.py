"""Events of audited queues, gathered where they are read, as items.

Theory of operation. Each event is an item of which no more is known. A hundred thousand at a time
are brought together, which makes half as many of them where queues are short. What is left goes to
the task that its hash says.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cogwork.dataplane.tables.map_numbers import MapNumbers
from cogwork.pipeline.arrow.places import map_places, plain
from cogwork.pipeline.audit.arrays import filled, is_there, micros
from cogwork.pipeline.audit.events import GIVEN_BACK, LAST, SHARD_DIGITS
from cogwork.pipeline.audit.hashing import add_column, row_hashes
from cogwork.pipeline.audit.items import (
    AT,
    BACK,
    CAME,
    CAME_AT,
    CODE,
    COLUMNS,
    FIRST_END,
    HASH,
    HELD,
    LAST_END,
    NEVER,
    NOT_YET,
    OUTCOMES,
    SHARD,
    UNTOLD,
    WENT_AT,
    brought_together,
    packed,
)
from cogwork.pipeline.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Table = NDArray[np.int64]
    Found = NDArray[np.uint8]

__all__ = ("ENDS", "Division", "ends", "find", "gather")

EVENTS_MAX = 1 << 17
"""Events that are brought together at a time: numbers that stay in a processor's cache."""

WAYS = 16
"""More than there are outcomes: an end is the attempt so many times, and the outcome."""

ACCEPTED, SETTLED, HELD_ON = 1, 2, 3
EVENTS = {"accepted": ACCEPTED, "settled": SETTLED, "held": HELD_ON}
BITS = {**OUTCOMES, **dict.fromkeys(GIVEN_BACK, BACK)}
WAY = {name: at for at, name in enumerate(LAST[:-1])}
"""`unknown` is none of them: it may be another telling of one that was known."""

NUMBER, ODD = 1, 2
"""What `MapNumbers` says of a number, and of something that is no plain one."""


ENDS = "first bigint, end_us bigint"


class Division(NamedTuple):
    """Which items are looked at, and into how many parts they are divided.

    Attributes:
        queues: The addresses of their queues; none is all.
        parts: How many parts.
    """

    queues: tuple[str, ...]
    parts: int


def gather(
    division: Division,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that goes through events, and makes rows of `PACKED`.

    Args:
        division: What is looked at, and how it is divided.
    """
    return partial(_gather, division)


def _gather(division: Division, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    keep_loaded()
    held: list[Table] = []
    for batch in batches:
        held.append(_items_of(batch, division.queues))
        if sum(table.shape[1] for table in held) >= EVENTS_MAX:
            yield packed(brought_together(held), division.parts)
            held = []
    if held:
        yield packed(brought_together(held), division.parts)


def find(
    hashes: Sequence[int],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that finds the offsets of all events of some items, from `NAMED`.

    Args:
        hashes: Those of the items.
    """
    return partial(_find, np.array(sorted(hashes), np.int64))


def _find(wanted: Table, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    keep_loaded()
    for batch in batches:
        hashes = row_hashes(batch.column("address"), batch.column("message_id")).view(np.int64)
        at = np.searchsorted(wanted, hashes).clip(max=len(wanted) - 1)
        found = np.flatnonzero(wanted[at] == hashes)
        if len(found):
            yield pa.record_batch([batch.column("offset").take(pa.array(found))], ["offset"])


def ends(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Say in a row of `ENDS` which is the lowest offset of a task, and the latest time."""
    keep_loaded()
    offsets, times = list[pa.Scalar](), list[pa.Scalar]()
    for batch in batches:
        offsets += pc.min_max(batch.column("offset")).values()
        times += pc.min_max(micros(batch.column("time"))).values()
    found = [
        [min((each.as_py() for each in offsets if each.is_valid), default=None)],
        [max((each.as_py() for each in times if each.is_valid), default=None)],
    ]
    yield pa.record_batch([pa.array(each, pa.int64()) for each in found], ["first", "end_us"])


# -- events


def _items_of(batch: pa.RecordBatch, queues: Sequence[str]) -> Table:
    """Make an item of each event."""
    event = _looked_up(batch.column("subject"), EVENTS, 0)
    outcome = batch.column("correlation_id")
    bits = _looked_up(outcome, BITS, 0, OUTCOMES["unknown"])
    way = _looked_up(outcome, WAY, -1)
    tried, is_tried = _numbers(batch, "attempt")
    position, has_position = _numbers(batch, "position")
    told = _are_told(batch, event, is_tried, has_position)
    code = np.choose(event, [np.int64(0), np.int64(CAME), bits, np.int64(HELD)]) | np.where(
        told, 0, UNTOLD
    )
    is_end = (event == SETTLED) & (way >= 0)
    end = tried * WAYS + way
    came = (has_position == NUMBER) & (code == CAME)
    went = (has_position == NUMBER) & (code != CAME) & (code != HELD)
    shard, hashes = _hashes_of(batch)
    table = np.empty((len(COLUMNS), len(code)), np.int64)
    table[HASH], table[CODE], table[SHARD] = hashes, code, shard
    table[FIRST_END] = np.where(is_end, end, NEVER)
    table[LAST_END] = np.where(is_end, end, NOT_YET)
    table[CAME_AT] = np.where(came, position, NEVER)
    table[WENT_AT] = np.where(went, position, NEVER)
    table[AT] = batch.column("offset").to_numpy()
    chosen = event > 0
    if queues:
        chosen &= (_looked_up(batch.column("address"), dict.fromkeys(queues, 1), 0) > 0) | ~told
    return table if chosen.all() else table[:, chosen]


def _are_told(batch: pa.RecordBatch, event: Table, *found: Found) -> NDArray[np.bool_]:
    """Say of which events the columns say all; where bodies were looked at, there is no more."""
    if "properties" not in batch.schema.names:
        return np.ones(len(event), bool)
    told: NDArray[np.bool_] = (event == HELD_ON) | (found[0] == NUMBER)
    told &= is_there(batch.column("address")) & is_there(batch.column("message_id"))
    for each in found:
        told &= each != ODD
    return told


def _looked_up(column: pa.Array, numbers: dict[str, int], other: int, null: int = 0) -> Table:
    """Replace texts, of which there are few different ones, by numbers.

    Args:
        column: The texts.
        numbers: The numbers of some.
        other: That of all others.
        null: That of those that are not there; where it is 0, that of others.
    """
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    known = [numbers.get(text, other) for text in column.dictionary.to_pylist()]
    chosen = np.array([*known, null or other], np.int64)
    found: Table = chosen[column.indices.fill_null(len(known)).to_numpy()]
    return found


def _numbers(batch: pa.RecordBatch, name: str) -> tuple[Table, Found]:
    """Return the numbers of one property, and where there are any."""
    if name in batch.schema.names:
        column = batch.column(name)
        return filled(column), is_there(column).astype(np.uint8)
    maps = plain(batch.column("properties"), pa.map_(pa.string(), pa.string()))
    entries, keys, values = map_places(maps)
    looked = MapNumbers(
        (entries.validity, entries.offsets, entries.first),
        (keys.offsets, keys.data, keys.first),
        (values.validity, values.offsets, values.data, values.first),
    )
    rows = batch.num_rows
    numbers, found = np.empty(rows, np.int64), np.empty(rows, np.uint8)
    looked.take(name.encode(), numbers, found)
    return numbers, found


def _hashes_of(batch: pa.RecordBatch) -> tuple[Table, Table]:
    """Return the hash of each event's shard, and of its item."""
    hashes = row_hashes(batch.column("address"))
    shards = hashes.copy()
    add_column(shards, batch.column("message_id"), characters=SHARD_DIGITS)
    add_column(hashes, batch.column("message_id"))
    return shards.view(np.int64), hashes.view(np.int64)

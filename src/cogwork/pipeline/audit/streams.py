"""Streams: offsets without gaps or duplicates, time that never goes back, producers in order.

Theory of operation. One pass over the records, in the order in which the files have them. Where
they are read, each batch is hashed, and folded into runs (`cogwork.pipeline.audit.runs`) of offsets
and of each producer's sequences, so that nothing is shuffled but a few rows a batch. Producers are
hashed to 64 bits: two that share a hash would look like breaks, and are looked up by their names
before anything is said of them.

The digest is the exclusive or, and the sum modulo 2^64, of all records' hashes; each hash covers
the offset too, so that the same records in another order have another digest, and parts can be
added up in any order. It is a fingerprint to compare copies by, not a signature.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.functions import col, lit

from cogwork.pipeline.audit.arrays import filled, is_there, micros
from cogwork.pipeline.audit.hashing import row_hashes
from cogwork.pipeline.audit.report import LISTED_MAX, Check
from cogwork.pipeline.audit.runs import Break, Runs, explain, fold
from cogwork.pipeline.spark.worker import keep_loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, Row

    from cogwork.pipeline.audit.source import Records

__all__ = ("BREAKS_MAX", "check_stream")

BREAKS_MAX = 1000
"""Breaks that are explained; of more, only how many there are is told."""

OFFSETS, SEQUENCES, TOTALS = 0, 1, 2

SCHEMA = (
    "kind int, key bigint, first bigint, last bigint, place_first bigint, place_last bigint, "
    "time_first bigint, time_last bigint"
)
"""What folding leaves of a stream; TOTALS has digests and counts in place of runs."""

BREAKS = """
select *, count(*) over (partition by kind) as breaks from (
  select *,
    max(last) over (partition by kind, key order by place_first, first
      rows between unbounded preceding and 1 preceding) as before,
    max(time_last) over (partition by kind order by place_first, first
      rows between unbounded preceding and 1 preceding) as time_before
  from {runs} where kind < 2
) where (before is not null and first <> before + 1)
  or (kind = 0 and time_first < time_before)
order by kind, key, place_first limit {limit}
"""

ENDS = """
select kind, count(distinct key) as producers, min(first) as first, max(last) as last,
  min(time_first) as time_first, max(time_last) as time_last
from {runs} where kind < 2 group by kind
"""


SHORT_MAX = 1 << 16
"""Numbers that fit sixteen bits."""

NAMES = "key bigint, name binary"
NAMED = pa.schema([("key", pa.int64()), ("name", pa.binary())])

HASHED = ("offset", "producer", "sequence", "subject", "body")
"""What a record's hash covers, in this order."""


def check_stream(stream: str, records: Records, mark: int | None = None) -> list[Check]:
    """Look at a stream's order.

    Args:
        stream: The stream's name.
        records: Its records.
        mark: The offset that is archived next; None where that is not known.
    """
    folded = records.mapped(("time", *HASHED), _fold_batches, SCHEMA).localCheckpoint()
    try:
        spark = records.spark
        ends = {row["kind"]: row for row in spark.sql(ENDS, runs=folded).collect()}
        found = spark.sql(BREAKS, runs=folded, limit=BREAKS_MAX).collect()
        totals = _totals(folded.where(f"kind = {TOTALS}").collect())
    finally:
        folded.unpersist()
    about = f"stream/{stream}"
    if OFFSETS not in ends:
        return [Check(about, "offsets without gaps or duplicates", remark="no records")]
    return [
        _check_offsets(about, ends[OFFSETS], _of(found, OFFSETS), totals, mark),
        _check_times(about, ends[OFFSETS], _of(found, OFFSETS)),
        _check_sequences(about, ends.get(SEQUENCES), _of(found, SEQUENCES), totals, records),
    ]


def _of(rows: list[Row], kind: int) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


# -- where rows are read


def _fold_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    keep_loaded()
    rows = anonymous = 0
    digest_xor, digest_sum = np.uint64(0), np.uint64(0)
    for batch in batches:
        if not batch.num_rows:
            continue
        offset, time = filled(batch.column("offset")), filled(micros(batch.column("time")))
        hashes = row_hashes(*(batch.column(name) for name in HASHED))
        rows += batch.num_rows
        digest_xor ^= np.bitwise_xor.reduce(hashes)
        digest_sum = np.add.reduce(np.append(hashes, digest_sum))
        same = np.zeros(len(offset), np.int64)
        yield _batch(OFFSETS, fold(same, offset, offset, time, times_rise=True))
        named = is_there(batch.column("producer")) & is_there(batch.column("sequence"))
        anonymous += int(len(named) - named.sum())
        if named.any():
            yield _batch(SEQUENCES, _sequences(batch, named, offset, time))
    digests = np.array([[digest_xor], [digest_sum]], np.uint64).view(np.int64)
    totals = Runs(
        key=np.zeros(1, np.int64),
        first=np.array([rows]),
        last=np.array([anonymous]),
        place_first=digests[0],
        place_last=digests[1],
        time_first=np.zeros(1, np.int64),
        time_last=np.zeros(1, np.int64),
    )
    yield _batch(TOTALS, totals)


def _sequences(
    batch: pa.RecordBatch,
    named: NDArray[np.bool_],
    offset: NDArray[np.int64],
    time: NDArray[np.int64],
) -> Runs:
    producers = batch.column("producer")
    if not pa.types.is_dictionary(producers.type):
        producers = producers.dictionary_encode()
    names = producers.dictionary
    key = filled(producers.indices)
    order = np.flatnonzero(named)
    if len(names) <= SHORT_MAX:  # which sorts by digits
        key = key.astype(np.uint16)
    order = order[np.argsort(key[order], kind="stable")]
    columns = (key, filled(batch.column("sequence")), offset, time)
    runs = fold(*(column[order] for column in columns), times_rise=False)
    return runs._replace(key=row_hashes(names).view(np.int64)[runs.key])


def _batch(kind: int, runs: Runs) -> pa.RecordBatch:
    kinds = pa.array(np.full(len(runs.key), kind, np.int32))
    return pa.RecordBatch.from_arrays(
        [kinds, *(pa.array(column) for column in runs)], names=["kind", *Runs._fields]
    )


def _find_names(keys: list[int], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the names that have some hashes; each is told once by a task."""
    keep_loaded()
    told = set[bytes]()
    for batch in batches:
        column = batch.column("producer")
        names = column.dictionary if pa.types.is_dictionary(column.type) else column.unique()
        hashes = row_hashes(names).view(np.int64)
        for at in np.flatnonzero(np.isin(hashes, keys) & is_there(names)).tolist():
            name = names[at].as_py()
            if name not in told:
                told.add(name)
                row = {"key": [int(hashes[at])], "name": [name]}
                yield pa.RecordBatch.from_pydict(row, NAMED)


# -- what the breaks mean


def _totals(rows: list[Row]) -> dict[str, Any]:
    digest_xor = digest_sum = 0
    for row in rows:
        digest_xor ^= row["place_first"] % (1 << 64)
        digest_sum += row["place_last"] % (1 << 64)
    return {
        "records": sum(row["first"] for row in rows),
        "anonymous": sum(row["last"] for row in rows),
        "digest": f"{digest_xor:016x}{digest_sum % (1 << 64):016x}",
    }


def _check_offsets(
    about: str, ends: Row, breaks: list[Row], totals: dict[str, Any], mark: int | None
) -> Check:
    check = Check(about, "offsets without gaps or duplicates")
    check.figures = {
        "records": totals["records"],
        "first": ends["first"],
        "next": ends["last"] + 1,
        "digest": totals["digest"],
    }
    jumps = [row for row in breaks if row["first"] != row["before"] + 1]
    rows = explain(_break(row) for row in jumps)
    check.violate([{"stream": about, **row} for row in rows], _count(rows, breaks))
    if mark is not None and mark > ends["last"] + 1:
        gap = {"kind": "missing", "first": ends["last"] + 1, "last": mark - 1, "place": None}
        check.violate([{"stream": about, **gap, "after": ends["last"]}])
    return check


def _check_times(about: str, ends: Row, breaks: list[Row]) -> Check:
    check = Check(about, "time never goes backwards")
    check.figures = {
        "from_us": ends["time_first"],
        "to_us": ends["time_last"],
    }
    back = [row for row in breaks if row["time_first"] < row["time_before"]]
    check.violate(
        [
            {
                "kind": "backwards",
                "stream": about,
                "place": row["place_first"],
                "time_us": row["time_first"],
                "before_us": row["time_before"],
            }
            for row in back
        ]
    )
    return check


def _check_sequences(
    about: str, ends: Row | None, breaks: list[Row], totals: dict[str, Any], records: Records
) -> Check:
    check = Check(about, "every producer's sequence once and in order")
    anonymous = totals["anonymous"]
    check.figures = {
        "producers": ends["producers"] if ends is not None else 0,
        "without_producer": anonymous,
    }
    if anonymous:
        check.remark = "records without a producer cannot be told from their duplicates"
    found: list[dict[str, Any]] = []
    named = _names_of(list(dict.fromkeys(row["key"] for row in breaks)), records)
    for key, names in named.items():
        own = [row for row in breaks if row["key"] == key]
        found += _explain_producer(about, names, own, records)
    check.violate(found, _count(found, breaks))
    return check


def _names_of(keys: list[int], records: Records) -> dict[int, list[bytes]]:
    """Find the producers that have some hashes."""
    if not keys:
        return {}
    rows = records.mapped(("producer",), partial(_find_names, keys), NAMES).distinct().collect()
    return {key: [bytes(row["name"]) for row in rows if row["key"] == key] for key in keys}


def _explain_producer(
    about: str, names: list[bytes], breaks: list[Row], records: Records
) -> list[dict[str, Any]]:
    """Explain the breaks of one hash, once it is clear that one producer has it."""
    if len(names) > 1:
        return _explain_apart(about, names, records.rows)
    name = names[0].hex()
    return [
        {"stream": about, "producer": name, **row} for row in explain(_break(row) for row in breaks)
    ]


def _explain_apart(about: str, names: list[bytes], rows: DataFrame) -> list[dict[str, Any]]:
    """Look at producers that share a hash, one after the other."""
    found: list[dict[str, Any]] = []
    for name in names:
        own = (
            rows.where(col("producer") == lit(name)).select("offset", "sequence").orderBy("offset")
        )
        breaks, before = list[Break](), -1
        for row in own.toLocalIterator():
            if before >= 0 and row["sequence"] != before + 1 and len(breaks) < BREAKS_MAX:
                number = row["sequence"]
                breaks.append(Break(0, before, number, number, row["offset"]))
            before = max(before, row["sequence"])
        found += [{"stream": about, "producer": name.hex(), **row} for row in explain(breaks)]
    return found


def _break(row: Row) -> Break:
    return Break(row["key"], row["before"], row["first"], row["last"], row["place_first"])


def _count(rows: list[dict[str, Any]], breaks: list[Row]) -> int:
    """Count violations: those that were explained, or break where there are too many."""
    total = max((row["breaks"] for row in breaks), default=0)
    if total > BREAKS_MAX:
        return max(int(total), len(rows))
    return len(rows)


assert LISTED_MAX <= BREAKS_MAX

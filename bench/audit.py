"""The audit of ten million items: makes an archive with planted violations, and audits it.

    python bench/audit.py [--items 10000000] [--keep DIR]

Two queues in two containers each; every item is accepted and settled, some out of order; a stream
has a record for each item besides. Planted are one lost item, one that was processed twice, and
two records of a producer that were swapped. Exactly these must be found, within the time. The
memory that is told is the greatest of the whole: the driver with its JVM, and Spark's workers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cogwork.pipeline.audit.run import audit
from cogwork.pipeline.spark.session import local_session

MUST_S: Final = 60.0
DRIVER_MEMORY: Final = "2g"
FILE_ROWS: Final = 1_000_000
BATCH_ROWS: Final = 250_000
BEGAN_US: Final = 1_790_000_000_000_000
EVENTS_S: Final = 2_000
"""Events a second, as the archive tells."""
LOOK_S: Final = 2.0
"""How often memory is looked at: to add up what a JVM holds takes a tenth of a second of a core."""
LAG: Final = 3000
"""Items that are in a queue at a time, about."""

TEXT: Final = pa.string()
SCHEMA: Final = pa.schema(
    [
        ("stream", TEXT),
        ("offset", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("producer", pa.binary()),
        ("sequence", pa.int64()),
        ("address", TEXT),
        ("subject", TEXT),
        ("message_id", TEXT),
        ("correlation_id", TEXT),
        ("reply_to", TEXT),
        ("content_type", TEXT),
        ("properties", pa.map_(TEXT, TEXT)),
        ("body", pa.binary()),
    ]
)


Columns = Callable[[int, int], pa.Array]
"""Makes the rows from one number up to another."""


class Directory:
    """An archive without a catalog: a directory of Parquet files for each stream."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def tables(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir())

    def files(self, stream: str) -> list[str]:
        return sorted(str(path) for path in (self.place / stream).glob("*.parquet"))

    def mark(self, stream: str) -> int:
        return sum(pq.read_metadata(path).num_rows for path in self.files(stream))


def write(place: Path, stream: str, columns: dict[str, Any]) -> None:
    """Write a stream's table; each value is an array, or one value for all rows."""
    (place / stream).mkdir(parents=True)
    total = next(len(each) for each in columns.values() if isinstance(each, np.ndarray))
    for start in range(0, total, FILE_ROWS):
        end = min(start + FILE_ROWS, total)
        file = place / stream / f"{start:012d}.parquet"
        with pq.ParquetWriter(file, SCHEMA, compression="zstd") as out:
            for at in range(start, end, BATCH_ROWS):
                out.write_batch(batch_of(stream, columns, at, min(at + BATCH_ROWS, end)))


def batch_of(stream: str, columns: dict[str, Any], start: int, end: int) -> pa.RecordBatch:
    rows = end - start
    offset = np.arange(start, end)
    given: dict[str, Any] = {
        "stream": pa.repeat(stream, rows),
        "offset": offset,
        "time": times(start, end).cast(SCHEMA.field("time").type),
    }
    for name, value in columns.items():
        if isinstance(value, np.ndarray):
            given[name] = value[start:end]
        else:
            given[name] = value(start, end) if callable(value) else pa.repeat(value, rows)
    arrays = [
        pa.array(given[field.name]).cast(field.type)
        if field.name in given
        else pa.nulls(rows, field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def times(start: int, end: int) -> pa.Array:
    return pa.array(BEGAN_US + np.arange(start, end) * (1_000_000 // EVENTS_S))


def names(item: np.ndarray) -> pa.Array:
    """Name items as containers do: the shard's eight digits, and sixteen of the number."""
    shards = pa.array([f"{each:08x}" for each in range(4)]).take(pa.array(item % 4))
    return joined(shards, pc.utf8_lpad(pa.array(item // 4).cast(TEXT), 16, "0"))


def make_stream(place: Path, items: int) -> None:
    """A record of 256 bytes for each item, from ten producers; two of them are swapped."""
    number = np.arange(items)
    sequence = number // 10
    swapped = items // 4 // 10 * 10 + 3
    sequence[[swapped, swapped + 10]] = sequence[[swapped + 10, swapped]]
    names = pa.array([f"producer-{each:07d}".encode() for each in range(10)])
    filler = "." * 236
    write(
        place,
        "orders",
        {
            "sequence": sequence,
            "producer": lambda start, end: names.take(pa.array(np.arange(start, end) % 10)),
            "address": "stream/orders",
            "body": lambda start, end: joined(
                pc.utf8_lpad(pa.array(np.arange(start, end)).cast(TEXT), 20, "0"), filler
            ),
        },
    )


def joined(*parts: pa.Array | str) -> pa.Array:
    texts = [each if isinstance(each, pa.Array) else pa.scalar(each, TEXT) for each in parts]
    return pc.binary_join_element_wise(*texts, "").cast(pa.binary())


def make_audit(place: Path, items: int) -> None:
    """Two events of each item, but for the lost one, and the one that comes twice."""
    random = np.random.default_rng(5)
    number = np.arange(items)
    lost, twice = items // 3, items // 2
    out_at = (number + LAG + random.integers(0, 40, items)) * 2 + 1
    settled = np.delete(number, lost)
    item = np.concatenate((number, settled, [twice]))
    is_settled = np.concatenate((np.zeros(items, bool), np.ones(items, bool)))
    order = np.argsort(
        np.concatenate((number * 2, np.delete(out_at, lost), [out_at[twice] + 2 * LAG])),
        kind="stable",
    )
    attempt = np.ones(2 * items, np.int64)
    attempt[-1] = 2
    item, is_settled, attempt = item[order], is_settled[order], attempt[order]
    position = np.zeros(2 * items, np.int64)
    for shard in range(4):
        for kind in (False, True):
            rows = np.flatnonzero((item % 4 == shard) & (is_settled == kind))
            position[rows] = np.arange(1, len(rows) + 1)
    sequence = np.zeros(2 * items, np.int64)
    for container in range(2):
        rows = np.flatnonzero(item // 2 % 2 == container)
        sequence[rows] = np.arange(len(rows))
    write(
        place,
        "$audit",
        {
            **audit_columns(item, is_settled),
            "properties": places(attempt, position),
            "sequence": sequence,
            "body": bodies(item, is_settled, attempt, position),
        },
    )


QUEUES: Final = pa.array(["work/orders", "work/invoices"])
CONTAINERS: Final = pa.array(["north", "south"])


def audit_columns(item: np.ndarray, is_settled: np.ndarray) -> dict[str, Any]:
    producers = pa.array([b"audit-of-north-1", b"audit-of-south-1"])
    events = pa.array(["accepted", "settled"])
    outcomes = pa.array([None, "accepted"], TEXT)

    def chosen(values: pa.Array, index: np.ndarray) -> Columns:
        return lambda start, end: values.take(pa.array(index[start:end].astype(np.int8)))

    return {
        "producer": chosen(producers, item // 2 % 2),
        "address": chosen(QUEUES, item % 2),
        "subject": chosen(events, is_settled),
        "message_id": lambda start, end: names(item[start:end]),
        "correlation_id": chosen(outcomes, is_settled),
        "content_type": "application/json",
    }


def places(attempt: np.ndarray, position: np.ndarray) -> Columns:
    """Attempt and position of each event, as application properties."""
    names = pa.array(["attempt", "position"])

    def make(start: int, end: int) -> pa.Array:
        said = np.stack((attempt[start:end], position[start:end]), axis=1).ravel()
        keys = names.take(pa.array(np.arange(len(said)) % 2))
        ends = pa.array(np.arange(0, len(said) + 1, 2, dtype=np.int32))
        return pa.MapArray.from_arrays(ends, keys, pa.array(said).cast(TEXT))

    return make


def bodies(
    item: np.ndarray, is_settled: np.ndarray, attempt: np.ndarray, position: np.ndarray
) -> Columns:
    events = pa.array(["accepted", "settled"])
    ends = pa.array(["null", '"accepted"'])

    def make(start: int, end: int) -> pa.Array:
        part = slice(start, end)
        kind = pa.array(is_settled[part].astype(np.int8))
        return joined(
            '{"event":"', events.take(kind),
            '","queue":"', QUEUES.take(pa.array(item[part] % 2)),
            '","container":"', CONTAINERS.take(pa.array(item[part] // 2 % 2)),
            '","item":"', names(item[part]).cast(TEXT),
            '","attempt":', pa.array(attempt[part]).cast(TEXT),
            ',"outcome":', ends.take(kind),
            ',"consumer":null,"position":', pa.array(position[part]).cast(TEXT),
            ',"digest":"00112233aabbccdd","time_us":', times(start, end).cast(TEXT),
            "}",
        )  # fmt: skip  # a line for each field

    return make


# -- measuring


class Memory(threading.Thread):
    """Watches what this process and all its children hold."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.greatest_bytes = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(LOOK_S):
            self.greatest_bytes = max(self.greatest_bytes, resident_bytes(os.getpid()))


def resident_bytes(process_id: int) -> int:
    """Add up proportional set sizes, so that what forked workers share counts once."""
    total = 0
    try:
        for line in Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for thread in Path(f"/proc/{process_id}/task").iterdir():
            children = (thread / "children").read_text().split()
            total += sum(resident_bytes(int(child)) for child in children)
    except OSError:
        return total  # it ended meanwhile
    return total


def measure(place: Path, master: str) -> dict[str, Any]:
    memory = Memory()
    memory.start()
    began = time.monotonic()
    settings = {"spark.driver.memory": DRIVER_MEMORY}
    session = local_session("bench", master, settings)
    try:
        report = audit(session, Directory(place), name=str(place), tell=print)
    finally:
        session.stop()
    took_s = time.monotonic() - began
    memory.ended.set()
    memory.join()
    kinds = [row["kind"] for check in report.checks for row in check.rows]
    return {
        "seconds": round(took_s, 1),
        "audit_seconds": round(report.duration_s, 1),
        "memory_mib": memory.greatest_bytes >> 20,
        "violations": report.violations,
        "kinds": sorted(kinds),
        "checks": [
            (check.about, check.claim, str(check.verdict), check.figures) for check in report.checks
        ],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--items", type=int, default=10_000_000)
    options.add_argument("--keep", type=Path, help="make the archive there, or use the one there")
    options.add_argument("--master", default="local[2]")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = chosen.keep or Path(scratch) / "archive"
        if not place.exists():
            began = time.monotonic()
            make_stream(place, chosen.items)
            make_audit(place, chosen.items)
            print(f"made {chosen.items} items in {time.monotonic() - began:.0f} s")
        result = measure(place, chosen.master)
    print(json.dumps(result, indent=1, default=str))
    if result["kinds"] != ["lost", "processed-twice", "swapped"]:
        sys.exit("the audit did not find exactly what was planted")
    if result["seconds"] > MUST_S:
        sys.exit(f"took longer than {MUST_S:.0f} s")


if __name__ == "__main__":
    main()

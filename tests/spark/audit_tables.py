"""Small archives for audits and analytics: records as dictionaries, tables as Parquet files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cogwork.pipeline.arrow import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BEGAN_US = 1_790_000_000_000_000
STEP_US = 1_000_000
"""A record a second."""

Record = dict[str, Any]


class Directory:
    """An archive without a catalog."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.marks: dict[str, int] = {}

    def put(self, stream: str, records: Iterable[Record], *, files: int = 2) -> None:
        """Write a stream's table; what a record does not say is made up."""
        rows = [numbered(stream, at, record) for at, record in enumerate(records)]
        (self.place / stream).mkdir(parents=True)
        self.marks[stream] = max((row["offset"] for row in rows), default=-1) + 1
        part = -(-len(rows) // files) or 1
        for at in range(0, len(rows), part):
            table = pa.Table.from_pylist(rows[at : at + part], schema=schema_of())
            pq.write_table(table, self.place / stream / f"{at:08d}.parquet")

    def tables(self) -> list[str]:
        return sorted(self.marks)

    def files(self, stream: str) -> list[str]:
        return sorted(map(str, (self.place / stream).glob("*.parquet")))

    def mark(self, stream: str) -> int:
        return self.marks[stream]


def numbered(stream: str, at: int, record: Record) -> Record:
    row: Record = dict.fromkeys(schema_of().names)
    row |= {"offset": at, "body": b""} | record
    if row["time"] is None:
        row["time"] = BEGAN_US + row["offset"] * STEP_US
    return row | {"stream": stream}


def of_producer(sequences: Iterable[int], producer: bytes = b"p") -> list[Record]:
    return [{"producer": producer, "sequence": each, "body": b"%d" % each} for each in sequences]


def said(subject: str, **fields: object) -> Record:
    body = json.dumps(fields, separators=(",", ":")).encode()
    return {"subject": subject, "content_type": "application/json", "body": body}


def accepted(item: int, *, queue: str = "work/a", **fields: object) -> Record:
    return event("accepted", item, queue, **{"position": item, **fields})


def settled(
    item: int, outcome: str | None = "accepted", *, queue: str = "work/a", **fields: object
) -> Record:
    usual = {"attempt": 1, "outcome": outcome, "position": item}
    return event("settled", item, queue, **{**usual, **fields})


def event(kind: str, item: int, queue: str, **fields: object) -> Record:
    """Make a record as containers write it, in the order of their fields."""
    body = {"event": kind, "queue": queue, "container": "north", "item": f"{1:08x}{item:016x}"}
    rest = {"attempt": 0, "outcome": None, "consumer": None, "position": None, "digest": None}
    return said(kind, **(body | rest | {"time_us": BEGAN_US} | fields))


def in_properties(record: Record) -> Record:
    """Have a record say in its properties, too, what containers say there."""
    told = json.loads(record["body"])
    if "item" not in told:
        return record
    places = {name: None if told[name] is None else str(told[name]) for name in PLACES}
    return record | {
        "address": told["queue"],
        "message_id": told["item"],
        "correlation_id": told["outcome"],
        "properties": list(places.items()),
    }


PLACES = ("attempt", "position")

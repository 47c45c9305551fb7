"""What an archive looks like: its columns, the names of its files and tables, its properties.

Theory of operation. The columns are those in which a container serves ranges of a stream. A table
has the name of its stream; where that has characters which other engines do not take, they become
`_`, and a hash of the whole name keeps two streams apart. A data file's name tells the stream's
offsets in it, the attempt that wrote it, and the table for which it was written, by the beginning
of its UUID: a sweep removes nothing that was written for another table.
"""

from __future__ import annotations

import hashlib
import re
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    BinaryType,
    IcebergType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimestamptzType,
)

from cogwork.pipeline.arrow import schema_of
from cogwork.pipeline.columns import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

    from cogwork.pipeline.columns import Column

__all__ = (
    "FIRST",
    "MISMATCHED",
    "NAMESPACE",
    "NEXT",
    "STREAM",
    "FileName",
    "day_text",
    "file_name_of",
    "file_schema",
    "iceberg_schema",
    "owner_of",
    "parse_file_name",
    "partition_spec",
    "table_name_of",
)

NAMESPACE = "cogwork"

STREAM = "cogwork.stream"
FIRST = "cogwork.first"
NEXT = "cogwork.next"
SEAM = "cogwork.seam"
"""The time and the digest of the last record: a stream that was made anew has another one there."""
ATTEMPT = "cogwork.attempt"
LOST = "cogwork.lost"
MISMATCHED = "cogwork.mismatched"
MISMATCHED_OFFSETS = "cogwork.mismatched-offsets"
SCHEMA = "cogwork.schema"

TABLE_NAME_MAX = 64
HASH_DIGITS = 8

COMPACTED = "compacted"
UUID_DIGITS = 12
_FILE_NAME = re.compile(
    r"(?P<table>\w+)-(?P<owner>[0-9a-f]{12}-)?(?P<first>\d{20})-(?P<next>\d{20})-(?P<attempt>\w+)"
    r"\.parquet"
)


class FileName(NamedTuple):
    """What the name of a data file says.

    Attributes:
        first: The offset of its first record.
        next: The one after its last.
        attempt: Who wrote it.
        owner: The first digits of the UUID of the table it was written for; empty in a file of an
            earlier version.
    """

    first: int
    next: int
    attempt: str
    owner: str


def owner_of(uuid: str) -> str:
    """Return what stands for a table in the names of its files.

    Args:
        uuid: The table's.
    """
    return uuid.replace("-", "")[:UUID_DIGITS]


def file_name_of(prefix: str, first: int, next_: int, attempt: str) -> str:
    """Name a data file.

    Args:
        prefix: The table's name and owner, as `ArchiveTable.file_prefix` has them.
        first: The offset of its first record.
        next_: The one after its last.
        attempt: Who writes it.
    """
    return f"{prefix}-{first:020}-{next_:020}-{attempt}.parquet"


def parse_file_name(path: str) -> FileName | None:
    """Read the name of a data file; None where it is not one of ours."""
    match = _FILE_NAME.fullmatch(path.rpartition("/")[2])
    if match is None:
        return None
    owner = (match["owner"] or "").removesuffix("-")
    return FileName(int(match["first"]), int(match["next"]), match["attempt"], owner)


def table_name_of(stream: str) -> str:
    """Return the name of a stream's table."""
    plain = re.sub(r"\W", "_", stream, flags=re.ASCII)
    if plain == stream and len(stream) <= TABLE_NAME_MAX and not stream.startswith("_"):
        return stream
    digest = hashlib.blake2b(stream.encode(), digest_size=HASH_DIGITS // 2).hexdigest()
    return f"{plain[: TABLE_NAME_MAX - HASH_DIGITS - 1].lstrip('_') or 't'}_{digest}"


def day_text(day: int) -> str:
    """Name the folder of a day, which is that many after 1970-01-01."""
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


@cache
def file_schema() -> pa.Schema:
    """Return the columns of a data file, as Arrow has them."""
    return schema_of(None)


@cache
def iceberg_schema() -> Schema:
    """Return the columns of a table; field ids are given once, and never to another column."""
    return Schema(*map(_field_of, COLUMNS))


def _field_of(column: Column) -> NestedField:
    field_id, *inner = column.field_ids
    kind = _texts(*inner) if column.kind == "texts" else _KINDS[column.kind]
    return NestedField(field_id=field_id, name=column.name, field_type=kind, required=False)


def _texts(key_id: int, value_id: int) -> MapType:
    return MapType(
        key_id=key_id,
        key_type=StringType(),
        value_id=value_id,
        value_type=StringType(),
        value_required=False,
    )


_KINDS: dict[str, IcebergType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int64": LongType(),
    "time": TimestamptzType(),
}


@cache
def partition_spec() -> PartitionSpec:
    """Return a partition for each day, in UTC."""
    time_id = iceberg_schema().find_field("time").field_id
    return PartitionSpec(
        PartitionField(source_id=time_id, field_id=1000, transform=DayTransform(), name="time_day")
    )

"""Parquet files that tasks read by themselves, column by column.

Theory of operation. Spark makes rows of columns, and a task in Python columns of rows; both take
longer than what an audit then does with them. Where files are at hand, its tasks read them as Arrow
reads them: each a few row groups that follow each other, a batch at a time. So a batch, and a page
of each column, is all that a task holds of a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cogwork.pipeline.arrow import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("Part", "Piece", "parts_of", "read")

PART_ROWS = 1_000_000
PART_BYTES = 512 << 20
"""What one task reads: whichever is reached first, as the file tells before it is compressed."""

BATCH_ROWS = 65_536
BATCH_BYTES = 16 << 20

LOOK_ROWS = 64
"""Rows that tell how much room one takes: a file says little of values that are repeated."""

BUFFER_BYTES = 1 << 20

WORDS = ("producer", "address", "subject", "correlation_id")
"""Columns with few different values, which are kept as a dictionary."""


class Piece(NamedTuple):
    """Row groups of a file that follow each other.

    Attributes:
        path: The file.
        first: The first of them.
        end: The one after the last.
    """

    path: str
    first: int
    end: int


Part = tuple[Piece, ...]
"""What one task reads."""


def parts_of(files: Sequence[str]) -> list[Part] | None:
    """Divide files among tasks, in their order.

    Returns:
        None where one of them cannot be read here, or has not all columns of a record.
    """
    parts: list[Part] = []
    pieces: list[Piece] = []
    rows = size_bytes = 0
    for file in files:
        path = _path_of(file)
        if path is None:
            return None
        try:
            metadata = pq.read_metadata(path)
        except (OSError, pa.ArrowInvalid):
            return None  # Spark says what is wrong with it
        paths = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
        if not {path.partition(".")[0] for path in paths}.issuperset(COLUMNS):
            return None
        for at in range(metadata.num_row_groups):
            group = metadata.row_group(at)
            rows += group.num_rows
            size_bytes += group.total_byte_size
            if pieces and pieces[-1].path == path:
                pieces[-1] = pieces[-1]._replace(end=at + 1)
            else:
                pieces.append(Piece(path, at, at + 1))
            if rows >= PART_ROWS or size_bytes >= PART_BYTES:
                parts.append(tuple(pieces))
                pieces, rows, size_bytes = [], 0, 0
    if pieces:
        parts.append(tuple(pieces))
    return parts


def _path_of(file: str) -> str | None:
    """Return the path of a file on a disk; None for what is elsewhere.

    As elsewhere with Hadoop and Iceberg, nothing in a place is quoted.
    """
    for prefix in ("file://", "file:"):
        if file.startswith(prefix):
            path = file.removeprefix(prefix)
            return path if path.startswith("/") else None
    return None if "://" in file else str(Path(file).absolute())


def read(part: Part, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read columns, in the order of the rows.

    Args:
        part: What is read.
        columns: Their names.
    """
    for piece in part:
        with pq.ParquetFile(
            piece.path,
            read_dictionary=[name for name in columns if name in WORDS],
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,
        ) as file:
            for at in range(piece.first, piece.end):
                rows = _batch_rows(file, at, columns)
                yield from file.iter_batches(rows, [at], columns, use_threads=False)


def _batch_rows(file: pq.ParquetFile, group: int, columns: Sequence[str]) -> int:
    """Return how many rows of a group make a batch."""
    told = file.metadata.row_group(group)
    if told.num_rows <= LOOK_ROWS:
        return LOOK_ROWS
    looked = next(file.iter_batches(LOOK_ROWS, [group], columns, use_threads=False))
    of_looked = looked.nbytes / max(looked.num_rows, 1)
    parts = [told.column(at) for at in range(told.num_columns)]
    chosen = [part for part in parts if part.path_in_schema.partition(".")[0] in columns]
    of_told = sum(part.total_uncompressed_size for part in chosen) / told.num_rows
    return int(max(LOOK_ROWS, min(BATCH_ROWS, BATCH_BYTES / max(of_looked, of_told, 1))))

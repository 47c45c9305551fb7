"""What a worker does: it reads a range of a stream and writes it as Parquet files.

Theory of operation. A job says all that a worker needs and may be sent anywhere. Its files have
names that nobody else ever writes, so a worker that is killed, or runs twice, leaves files which
are in no table. Times never go back in a stream: so a file ends where the day does, and each
belongs to one partition. Bodies stay as they are; those that a schema of the stream does not allow
are counted and named.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import load_file_io

from cogwork.client.connection.certificates import NONE, Certificates
from cogwork.pipeline.archive import layout
from cogwork.pipeline.archive.errors import ArchiveError
from cogwork.pipeline.archive.table import Seam, local_path
from cogwork.pipeline.arrow import COLUMNS, ArrowClient
from cogwork.schema import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyiceberg.io import FileIO

__all__ = ("Job", "ParquetFile", "Written", "write", "write_options")

DAY_US = 86_400_000_000
ROW_GROUP_ROWS_MAX = 128 * 1024
ROW_GROUP_BYTES_MAX = 64 * 2**20
"""A worker holds a row group at a time; readers, too."""

PLAIN = frozenset(COLUMNS) - {
    *("stream", "producer", "address", "subject", "reply_to", "content_type")
}
"""Where values do not repeat, as in bodies and offsets, a dictionary of them costs time."""

WITHOUT_STATISTICS = ("properties", "body")

MISMATCHED_LISTED_MAX = 100


class Job(msgspec.Struct, frozen=True):
    """A range to write.

    Attributes:
        url: Where the stream is.
        stream: Its name.
        prefix: What the names of the table's files begin with.
        location: The table's folder.
        io: How files are reached there, in pyiceberg's properties.
        start: The first offset.
        end: After the last one.
        schemas: The schemas that are registered; None where the stream has none.
        timeout_s: How long a container may be away.
        certificates: For TLS.
    """

    url: str
    stream: str
    prefix: str
    location: str
    io: dict[str, str]
    start: int
    end: int
    schemas: bytes | None = None
    timeout_s: float = 60.0
    certificates: Certificates = NONE


class Written(msgspec.Struct, frozen=True):
    """What a worker reports.

    Attributes:
        start: The job's.
        end: The job's.
        paths: The files, in order.
        rows: How many records are in them.
        size_bytes: The files' sizes.
        seam: The last record; empty where there is none.
        mismatched: How many bodies are not what the stream's schema says.
        mismatches: The first ones of these, with what is wrong.
    """

    start: int
    end: int
    paths: list[str]
    rows: int
    size_bytes: int
    seam: str
    mismatched: int = 0
    mismatches: list[tuple[int, str]] = []


def write(job: Job, on_step: Callable[[str], None] | None = None) -> Written:
    """Do a job.

    Args:
        job: Which one.
        on_step: Told `writing` after each batch.

    Raises:
        ArchiveError: The stream did not give the range.
        ArrowError: It could not be read.
    """
    files = _Files(job, on_step or _unheard)
    check = _Check(job)
    last: pa.RecordBatch | None = None
    at = job.start
    try:
        tls = job.certificates.context()
        with ArrowClient(job.url, timeout_s=job.timeout_s, tls=tls) as client:
            for batch in client.read(job.stream, job.start, job.end):
                at = _continued(job, batch, at)
                check.take(batch)
                for part, day in _days_of(batch):
                    files.write(part, day)
                last = batch
        if at != job.end:
            raise ArchiveError(f"stream/{job.stream} ended at {at}, before {job.end}")
        files.close()
    except BaseException:
        files.drop()
        raise
    return Written(
        start=job.start,
        end=job.end,
        paths=files.paths,
        rows=job.end - job.start,
        size_bytes=files.size_bytes,
        seam="" if last is None else str(seam_of(last)),
        mismatched=check.count,
        mismatches=check.listed,
    )


def _unheard(step: str) -> None:
    del step


def _continued(job: Job, batch: pa.RecordBatch, at: int) -> int:
    """See whether a batch has the next records, all of them; return the offset after it."""
    offsets = batch.column("offset")
    following: int = at + batch.num_rows
    if batch.num_rows and (offsets[0].as_py(), offsets[-1].as_py()) != (at, following - 1):
        raise ArchiveError(
            f"stream/{job.stream} gave {offsets[0]} to {offsets[-1]} where {at} was next"
        )
    return following


def seam_of(batch: pa.RecordBatch) -> Seam:
    """Return what tells the last record of a batch from all others."""
    time_us = batch.column("time").cast(pa.int64())[-1].as_py()
    body = batch.column("body")[-1].as_py()
    return Seam(time_us, hashlib.blake2b(body or b"", digest_size=8).hexdigest())


def _days_of(batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the parts of a batch that are of one day, which is that many after 1970-01-01."""
    times = batch.column("time").cast(pa.int64())
    start = 0
    while start < batch.num_rows:
        day = times[start].as_py() // DAY_US
        end = batch.num_rows
        if times[end - 1].as_py() // DAY_US != day:
            later = pc.greater_equal(times.slice(start), (day + 1) * DAY_US)
            end = start + pc.index(later, True).as_py()
        yield batch.slice(start, end - start), day
        start = end


def write_options(names: Iterable[str] = COLUMNS) -> dict[str, Any]:
    """How our Parquet files are made.

    Args:
        names: Of the columns; a table may have others than ours.
    """
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [each for each in names if each not in PLAIN],
        "write_statistics": [each for each in names if each not in WITHOUT_STATISTICS],
        "store_schema": True,
    }


class _Files:
    """The files of one job, one after the other."""

    def __init__(self, job: Job, on_step: Callable[[str], None]) -> None:
        self.paths: list[str] = []
        self.size_bytes = 0
        self._job = job
        self._on_step = on_step
        self._io: FileIO = load_file_io(job.io, job.location)
        self._day: int | None = None
        self._file: ParquetFile | None = None

    def write(self, batch: pa.RecordBatch, day: int) -> None:
        if self._file is None or day != self._day:
            self.close()
            self._day = day
            path = _path_of(self._job, batch, day)
            self.paths.append(path)
            self._file = ParquetFile(self._io, path)
        self._file.write(batch)
        self._on_step("writing")

    def close(self) -> None:
        if self._file is not None:
            self.size_bytes += self._file.close()
            self._file = None

    def drop(self) -> None:
        """Remove what was written; what cannot be removed is left for the sweep."""
        if self._file is not None:
            self._file.abandon()
        for path in self.paths:
            remove(self._io, path)


def remove(io: FileIO, path: str) -> bool:
    """Remove a file, if it is there and can be removed; return whether it was."""
    try:
        io.delete(path)
    except Exception:  # stores say that it is not there each in their own way
        return False
    return True


def _path_of(job: Job, batch: pa.RecordBatch, day: int) -> str:
    first = batch.column("offset")[0].as_py()
    name = layout.file_name_of(job.prefix, first, job.end, uuid4().hex)
    return f"{job.location}/data/{layout.day_text(day)}/{name}"


class ParquetFile:
    """A file that is being written, in row groups."""

    def __init__(self, io: FileIO, path: str, schema: pa.Schema | None = None) -> None:
        """Make the file.

        Args:
            io: Writes it.
            path: Where.
            schema: Its columns, where they are others than ours.
        """
        self._path = path
        self._sink = io.new_output(path).create()
        self._schema = layout.file_schema() if schema is None else schema
        options = write_options(self._schema.names)
        self._writer = pq.ParquetWriter(self._sink, self._schema, **options)
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROW_GROUP_ROWS_MAX or self._bytes >= ROW_GROUP_BYTES_MAX:
            self._flush()

    def _flush(self) -> None:
        if self._batches:
            rows = pa.Table.from_batches(self._batches, self._schema)
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._batches, self._rows, self._bytes = [], 0, 0

    def close(self) -> int:
        """Finish the file, and have it on disk where it is a local one; return its size."""
        self._flush()
        self._writer.close()
        size_bytes: int = self._sink.tell()
        self._sink.close()
        sync(self._path)
        return size_bytes

    def abandon(self) -> None:
        """Let go of the file as it is."""
        try:
            self._writer.close()
            self._sink.close()
        except (OSError, pa.ArrowException):
            return


def sync(path: str) -> None:
    """Have a local file and its name on disk; stores of objects see to that themselves."""
    local = local_path(path)
    if not os.path.isabs(local):
        return
    folder = os.path.dirname(local)  # of a day, which may be a new one
    for each in (local, folder, os.path.dirname(folder)):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _Check:
    """Looks for bodies that are not what the schema of their stream says."""

    def __init__(self, job: Job) -> None:
        self.count = 0
        self.listed: list[tuple[int, str]] = []
        self._registry = None if job.schemas is None else Registry.from_bytes(job.schemas)
        self._stream = f"stream/{job.stream}"

    def take(self, batch: pa.RecordBatch) -> None:
        if self._registry is None:
            return
        columns = ("offset", "address", "content_type", "body")
        for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            problem = self._problem(self._registry, *row[1:])
            if problem is None:
                continue
            self.count += 1
            if len(self.listed) < MISMATCHED_LISTED_MAX:
                self.listed.append((row[0], problem))

    def _problem(
        self, registry: Registry, address: str | None, content_type: str | None, body: bytes | None
    ) -> str | None:
        """By the schema of the address that a captured message was sent to, or the stream's."""
        where = address if address and registry.find(address) is not None else self._stream
        return registry.check(where, content_type, body or b"")

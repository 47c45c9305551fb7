"""Keeping a table in shape: small files become large ones, old snapshots and orphans go.

Theory of operation. Compaction has a module of its own. It may run beside an archiver, and
whichever of the two is killed, or comes second, has changed nothing. Expiry gives up old
snapshots. The sweep removes files that no snapshot has, but none that it cannot prove to be the
table's own: a data file has the beginning of the table's UUID in its name, and Iceberg's own files
are the table's where no metadata file in the folder is another table's. A table whose catalog was
lost may lie in the same folder, and would lose its only copy. And a file goes only once it is old:
a live archiver or compaction may be about to commit it.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pyarrow import fs as arrow_fs
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.serializers import FromInputFile

from cogwork.pipeline.archive import layout
from cogwork.pipeline.archive.compaction import compact
from cogwork.pipeline.archive.errors import ArchiveError, PlaceTaken
from cogwork.pipeline.archive.notice import Notice, unheard
from cogwork.pipeline.archive.table import local_path
from cogwork.pipeline.archive.work import remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cogwork.pipeline.archive.notice import Listener
    from cogwork.pipeline.archive.table import ArchiveTable

__all__ = (
    "Kept",
    "Upkeep",
    "compact",
    "expire",
    "foreign_files",
    "keep",
    "listed_files",
    "newest_metadata",
    "sweep",
)

METADATA_FILE = re.compile(r"\.metadata\.json(\.gz)?$|\.gz\.metadata\.json$")

TARGET_BYTES = 128 * 2**20
"""What a compacted file is to have, about: large enough for scans, small enough to share out."""

SMALL_FILES_MIN = 4
"""Fewer are not worth a rewrite."""

ORPHAN_AGE_S = 3 * 86_400.0
SNAPSHOT_AGE_S = 86_400.0
SNAPSHOTS_KEPT_MIN = 10


class Upkeep(NamedTuple):
    """How a table is kept.

    Attributes:
        target_bytes: What files are compacted to.
        small_files_min: How many small files in a row are compacted.
        snapshot_age_s: So old snapshots are given up.
        snapshots_kept_min: But so many are kept.
        orphan_age_s: So old a file has to be that could still belong to a live attempt.
    """

    target_bytes: int = TARGET_BYTES
    small_files_min: int = SMALL_FILES_MIN
    snapshot_age_s: float = SNAPSHOT_AGE_S
    snapshots_kept_min: int = SNAPSHOTS_KEPT_MIN
    orphan_age_s: float = ORPHAN_AGE_S


class Kept(NamedTuple):
    """What was done.

    Attributes:
        compacted: How many files became fewer.
        into: How many they became.
        expired: How many snapshots were given up.
        swept: How many files were removed.
    """

    compacted: int = 0
    into: int = 0
    expired: int = 0
    swept: int = 0


def keep(table: ArchiveTable, how: Upkeep | None = None, on_notice: Listener = unheard) -> Kept:
    """Compact, expires and sweeps, in this order.

    Args:
        table: Which one.
        how: By which measures.
        on_notice: Told each step.
    """
    chosen = how or Upkeep()
    compacted, into = compact(table, chosen, on_notice)
    expired = expire(table, chosen)
    on_notice(Notice("expired", table.stream, items=expired))
    return Kept(compacted, into, expired, sweep(table, chosen, on_notice))


# -- expiry


def expire(table: ArchiveTable, how: Upkeep) -> int:
    """Give up old snapshots; return how many."""
    table.refresh()
    newest_first = sorted(
        table.table.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0, reverse=True
    )
    before_ms = (time.time() - how.snapshot_age_s) * 1000
    gone = [
        snapshot.snapshot_id
        for snapshot in newest_first[max(1, how.snapshots_kept_min) :]
        if snapshot.timestamp_ms <= before_ms
    ]
    if gone:
        table.expire(gone)
    return len(gone)


# -- the sweep


def sweep(table: ArchiveTable, how: Upkeep, on_notice: Listener = unheard) -> int:
    """Remove files that no snapshot has and none can get; return how many."""
    on_notice(Notice("sweeping", table.stream))
    # The listing comes first: what is committed after it is in the references all the same.
    listed = list(listed_files(table))
    table.refresh()
    needed = {local_path(path) for path in table.references()}
    orphans = [each for each in listed if local_path(each[0]) not in needed]
    is_shared = any(_is_of_another(table, path, if_unreadable=True) for path, _ in orphans)
    before = time.time() - how.orphan_age_s
    swept = 0
    for path, changed in orphans:
        is_own = _is_own(table, path, is_shared=is_shared)
        if is_own and changed <= before and remove(table.io, path):
            swept += 1
            on_notice(Notice("sweeping", table.stream, items=swept))
    on_notice(Notice("swept", table.stream, items=swept))
    return swept


def _is_own(table: ArchiveTable, path: str, *, is_shared: bool) -> bool:
    """Say whether a file that no snapshot has was certainly written for this table."""
    name = layout.parse_file_name(path)
    if name is not None and name.owner:
        return name.owner == table.owner
    return not is_shared


def foreign_files(table: ArchiveTable, paths: Iterable[str]) -> list[str]:
    """Return the data and metadata files of other tables among some files.

    Args:
        table: Which one is meant; what others commit to it meanwhile is not foreign.
        paths: Files below its location.
    """
    chosen = list(paths)
    data = [path for path in chosen if path.endswith(".parquet")]
    foreign = [path for path in data if not _is_own(table, path, is_shared=True)]
    # Another archiver may be writing metadata of this very table.
    metadata = (path for path in chosen if _is_of_another(table, path, if_unreadable=False))
    return [*foreign, *metadata]


def newest_metadata(table: ArchiveTable, paths: Iterable[str]) -> str:
    """Return the newest metadata file of the one table that has left some in a folder.

    Args:
        table: A table of the same stream, which lies there.
        paths: Files of the folder.

    Raises:
        PlaceTaken: There is none, or there are some of several tables, or of another stream's.
    """
    found = {}
    for path in paths:
        if METADATA_FILE.search(path):
            with suppress(Exception):  # half-written: not the newest that was committed
                found[path] = FromInputFile.table_metadata(table.io.new_input(path))
    found = {path: each for path, each in found.items() if each.current_snapshot_id is not None}
    tables = {str(each.table_uuid) for each in found.values()}
    where = local_path(table.location)
    if len(tables) != 1:
        raise PlaceTaken(f"{where} has metadata of {len(tables)} tables; one can be taken over")
    newest = max(found, key=lambda path: (found[path].last_updated_ms, path))
    stream = found[newest].properties.get(layout.STREAM)
    if stream != table.stream:
        raise PlaceTaken(f"{where} has the table of stream/{stream}, not of stream/{table.stream}")
    return newest


def _is_of_another(table: ArchiveTable, path: str, *, if_unreadable: bool) -> bool:
    """Say whether a metadata file is that of another table with records.

    An archiver that is killed while it makes a table leaves one without any, which nobody misses.

    Args:
        table: Which one is meant.
        path: Any file.
        if_unreadable: What to say of one that cannot be read, or is just being written.
    """
    if not METADATA_FILE.search(path):
        return False
    try:
        found = FromInputFile.table_metadata(table.io.new_input(path))
    except Exception:  # whatever it is, it is not known whose it is
        return if_unreadable
    return str(found.table_uuid) != table.uuid and found.current_snapshot_id is not None


def listed_files(table: ArchiveTable) -> Iterator[tuple[str, float]]:
    """Yield the files in a table's folder, and when each was changed in seconds since 1970."""
    if not isinstance(table.io, PyArrowFileIO):
        raise ArchiveError("only tables whose files pyarrow reaches can be swept")
    scheme, host, path = PyArrowFileIO.parse_location(table.location, table.io.properties)
    files = table.io.fs_by_scheme(scheme, host)
    chosen = arrow_fs.FileSelector(path, recursive=True, allow_not_found=True)
    for info in files.get_file_info(chosen):
        if info.type == arrow_fs.FileType.File:
            location = table.location + info.path.removeprefix(path)
            yield location, info.mtime_ns / 1e9 if info.mtime_ns is not None else time.time()

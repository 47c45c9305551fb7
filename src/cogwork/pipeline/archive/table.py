"""One table: where it goes on, what is in it, and the commit that is all there is of state.

Theory of operation. The mark is the offset that is archived next. It is in the properties of each
snapshot, and the commit that adds the records from A to before B demands that the table's current
snapshot is still the one whose mark was found to be A: the catalog compares and swaps. So of two
archivers one succeeds, and the other learns the new mark; and whoever is killed, before the commit
or after it, has left a table that says by itself where to go on. Nothing else is kept anywhere.

pyiceberg repeats a commit that lost such a race on top of the new snapshot, which is right for
appends that do not care, and would put records in twice here: tables are made with
`commit.retry.num-retries` 0, and one that has something else is set right when it is opened.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.types import LongType

from cogwork.pipeline.archive import layout
from cogwork.pipeline.archive.errors import ArchiveError, MarkMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

__all__ = ("ArchiveTable", "DataFile", "Seam", "local_path")

T = TypeVar("T")

NO_RETRIES = {"commit.retry.num-retries": "0"}
TABLE_PROPERTIES = {
    **NO_RETRIES,
    "write.parquet.compression-codec": "zstd",
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    # Nobody looks for a body or a property by its bounds.
    "write.metadata.metrics.column.body": "none",
    "write.metadata.metrics.column.properties.key": "none",
    "write.metadata.metrics.column.properties.value": "none",
}

UNCONTESTED_TRIES_MAX = 10
"""For commits that do not depend on the mark, and just have to come between two others."""


class DataFile(NamedTuple):
    """A Parquet file of a table.

    Attributes:
        path: Where; without `file://` where it is on this machine.
        first: The offset of its first record.
        last: Of its last one.
        rows: How many there are.
        size_bytes: Its size.
        entry: What the table's manifest says of it.
    """

    path: str
    first: int
    last: int
    rows: int
    size_bytes: int
    entry: IcebergFile


class Seam(NamedTuple):
    """The last record that was archived, by which its stream is known again.

    Attributes:
        time_us: When it was appended.
        digest: Of its body.
    """

    time_us: int
    digest: str

    def __str__(self) -> str:
        return f"{self.time_us}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Seam:
        """Read what `str` wrote."""
        time_us, _, digest = text.partition(":")
        return cls(int(time_us), digest)


def local_path(location: str) -> str:
    """Return a path as other engines take it: without `file://`."""
    return location.removeprefix("file://")


class ArchiveTable:
    """A stream's table in a catalog.

    Attributes:
        stream: The stream's name.
    """

    def __init__(self, table: Table) -> None:
        """Take a table that is there.

        Args:
            table: As the catalog loaded it.
        """
        self._table = table
        self.stream = table.properties[layout.STREAM]

    # -- what it says

    @property
    def table(self) -> Table:
        """The table itself, for readers with pyiceberg."""
        return self._table

    @property
    def name(self) -> str:
        """Its name in the catalog, without the namespace."""
        return str(self._table.name()[-1])

    @property
    def location(self) -> str:
        """Where its files are."""
        return self._table.location()

    @property
    def io(self) -> FileIO:
        """Reads and writes its files."""
        return self._table.io

    @property
    def uuid(self) -> str:
        """What tells it from a table of the same name."""
        return str(self._table.metadata.table_uuid)

    @property
    def owner(self) -> str:
        """What stands for the table in the names of its files."""
        return layout.owner_of(self.uuid)

    @property
    def file_prefix(self) -> str:
        """What the names of its data files begin with."""
        return f"{self.name}-{self.owner}"

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return self._table.properties

    def refresh(self) -> None:
        """Look what others have committed."""
        self._table.refresh()

    @property
    def mark(self) -> int:
        """The offset that is archived next."""
        return int(self._said(layout.NEXT) or self.first)

    @property
    def first(self) -> int:
        """The first offset that is in the table, or would be."""
        return int(self.properties[layout.FIRST])

    @property
    def seam(self) -> Seam | None:
        """The last record that was archived; None where there is none yet."""
        text = self._said(layout.SEAM)
        return Seam.parse(text) if text else None

    @property
    def mismatched(self) -> int:
        """Counts records whose bodies are not what the stream's schema says."""
        return int(self._said(layout.MISMATCHED) or 0)

    def mismatched_offsets(self) -> list[int]:
        """List offsets of such records, those that were found last."""
        return [int(each) for each in json.loads(self._said(layout.MISMATCHED_OFFSETS) or "[]")]

    def _said(self, key: str) -> str | None:
        """Find what the newest snapshot says that says anything of it.

        Snapshots that other engines make, by compacting say, have no properties of ours.
        """
        snapshot = self._table.current_snapshot()
        while snapshot is not None:
            if (found := _summary_of(snapshot).get(key)) is not None:
                return found
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._table.snapshot_by_id(parent)
        return self.properties.get(key)

    def files(self, row_filter: str | None = None) -> list[DataFile]:
        """List the files of the current snapshot, in the order of their offsets.

        Args:
            row_filter: Only those that may have such rows.

        Raises:
            ArchiveError: Another engine has written deletes, which none of our readers apply.
        """
        if self._table.current_snapshot() is None:
            return []
        found = []
        for task in self._table.scan(row_filter=row_filter or AlwaysTrue()).plan_files():
            if task.delete_files:
                raise ArchiveError(f"table {self.name} has delete files; compact it elsewhere")
            found.append(self._described(task.file))
        return sorted(found, key=lambda file: (file.first, file.last))

    def files_to_rewrite(self) -> list[DataFile]:
        """List the files that may be put together with others, in the order of their offsets.

        Not those of an earlier partitioning, those with delete files, and those of other engines
        that do not say their offsets.
        """
        if self._table.current_snapshot() is None:
            return []
        spec_id = self._table.spec().spec_id
        found = []
        for task in self._table.scan().plan_files():
            if task.file.spec_id == spec_id and not task.delete_files:
                with suppress(ArchiveError):
                    found.append(self._described(task.file))
        return sorted(found, key=lambda file: (file.first, file.last))

    def _described(self, entry: IcebergFile) -> DataFile:
        field_id = self._table.schema().find_field("offset").field_id
        try:
            first, last = (
                int(from_bytes(LongType(), each[field_id]))
                for each in (entry.lower_bounds, entry.upper_bounds)
            )
        except (KeyError, TypeError):
            raise ArchiveError(
                f"table {self.name} has a file that does not say its offsets: {entry.file_path}"
            ) from None
        return DataFile(
            local_path(entry.file_path),
            first,
            last,
            entry.record_count,
            entry.file_size_in_bytes,
            entry,
        )

    def metadata_paths(self) -> list[str]:
        """List the files that the current snapshot consists of, besides those with records."""
        snapshot = self._table.current_snapshot()
        if snapshot is None:
            return [self._table.metadata_location]
        manifests = [each.manifest_path for each in snapshot.manifests(self.io)]
        return [*manifests, snapshot.manifest_list, self._table.metadata_location]

    def references(self) -> set[str]:
        """List all files that the table still needs: of each snapshot, and of its own history."""
        metadata = self._table.metadata
        found = {self._table.metadata_location, *(it.metadata_file for it in metadata.metadata_log)}
        manifests: dict[str, ManifestFile] = {}
        for snapshot in metadata.snapshots:
            found.add(snapshot.manifest_list)
            manifests |= {each.manifest_path: each for each in snapshot.manifests(self.io)}
        found |= manifests.keys()
        found |= {each.statistics_path for each in metadata.statistics}
        for manifest in manifests.values():
            for entry in manifest.fetch_manifest_entry(self.io, discard_deleted=True):
                found.add(entry.data_file.file_path)
        return found

    # -- committing

    def append(
        self, start: int, end: int, paths: Sequence[str], properties: Mapping[str, str]
    ) -> None:
        """Add the records from `start` to before `end`, if the mark is `start`.

        Args:
            start: Where the table has to be.
            end: The new mark.
            paths: The files with exactly these records.
            properties: What else the snapshot is to say.

        Raises:
            MarkMoved: It is elsewhere; nothing was added.
        """
        self._table.refresh()
        if self.mark != start:
            raise MarkMoved(self.mark)
        said = {layout.STREAM: self.stream, layout.NEXT: str(end), **properties}
        attempt = said[layout.ATTEMPT]
        transaction = self._table.transaction()
        transaction.set_properties({layout.NEXT: str(end)})
        transaction.add_files(list(paths), snapshot_properties=said, check_duplicate_files=False)
        try:
            transaction.commit_transaction()
        except Exception as error:
            # A catalog may fail after it has committed; what the table says is what counts.
            self._table.refresh()
            if self._has(attempt):
                return
            if self.mark != start or isinstance(error, CommitFailedException):
                raise MarkMoved(self.mark) from error
            raise

    def _has(self, attempt: str) -> bool:
        return any(
            _summary_of(snapshot).get(layout.ATTEMPT) == attempt
            for snapshot in self._table.snapshots()
        )

    def replace(self, old: Sequence[DataFile], paths: Sequence[str]) -> bool:
        """Put files in the place of others with the same records.

        Args:
            old: What goes, all of one partition.
            paths: What comes.

        Returns:
            Whether that was done: one that goes may have gone before.
        """

        def attempt() -> bool:
            there = {file.path for file in self.files_to_rewrite()}
            if not all(file.path in there for file in old):
                return False
            transaction = self._table.transaction()
            with transaction.update_snapshot(snapshot_properties=self._carried()).overwrite() as it:
                for file in old:
                    it.delete_data_file(file.entry)
                for path in paths:
                    it.append_data_file(self._entry_of(path, old[0].entry))
            transaction.commit_transaction()
            return True

        return self._between(attempt)

    def _entry_of(self, path: str, old: IcebergFile) -> IcebergFile:
        """Describe a file with records of others, in the same partition as these."""
        metadata = self._table.metadata
        schema = metadata.schema()
        written = self.io.new_input(path)
        with written.open() as source:
            told = data_file_statistics_from_parquet_metadata(
                parquet_metadata=pq.read_metadata(source),
                stats_columns=compute_statistics_plan(schema, metadata.properties),
                parquet_column_mapping=parquet_path_to_id_mapping(schema),
            )
        made: IcebergFile = type(old).from_args(
            content=old.content,
            file_path=path,
            file_format=old.file_format,
            partition=old.partition,
            file_size_in_bytes=len(written),
            sort_order_id=None,
            spec_id=old.spec_id,
            equality_ids=None,
            key_metadata=None,
            **told.to_serialized_dict(),
        )
        return made

    def _carried(self) -> dict[str, str]:
        """Return what a snapshot says that adds no records."""
        keys = (layout.NEXT, layout.SEAM, layout.MISMATCHED, layout.MISMATCHED_OFFSETS)
        said = {key: self._said(key) for key in keys}
        return {layout.STREAM: self.stream} | {
            key: value for key, value in said.items() if value is not None
        }

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties of the table; those that it has already cost nothing."""

        def attempt() -> None:
            news = {key: it for key, it in properties.items() if self.properties.get(key) != it}
            if news:
                self._table.transaction().set_properties(news).commit_transaction()

        self._between(attempt)

    def forbid_retries(self) -> None:
        """Make sure that a lost race is never repeated by pyiceberg."""
        self.set_properties(NO_RETRIES)

    def expire(self, ids: Iterable[int]) -> None:
        """Give up snapshots; the current one stays, whatever `ids` says."""
        wanted = set(ids)

        def attempt() -> None:
            current = self._table.current_snapshot()
            there = {snapshot.snapshot_id for snapshot in self._table.snapshots()}
            gone = (wanted & there) - {current.snapshot_id if current else None}
            if gone:
                self._table.maintenance.expire_snapshots().by_ids(sorted(gone)).commit()

        self._between(attempt)

    def _between(self, attempt: Callable[[], T]) -> T:
        """Try until no other commit comes in between."""
        for tries in range(1, UNCONTESTED_TRIES_MAX + 1):
            try:
                self._table.refresh()
                return attempt()
            except CommitFailedException:
                if tries == UNCONTESTED_TRIES_MAX:
                    raise
        raise AssertionError("the last try returns or raises")


def _summary_of(snapshot: Snapshot) -> dict[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}

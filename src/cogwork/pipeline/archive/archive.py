"""An archive: the tables of many streams in one catalog."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import PyArrowFileIO
from sqlalchemy.exc import IntegrityError

from cogwork.pipeline.archive import layout
from cogwork.pipeline.archive.catalog import answers, open_catalog, shown
from cogwork.pipeline.archive.errors import ForeignTable, PlaceTaken, TableMissing
from cogwork.pipeline.archive.table import TABLE_PROPERTIES, ArchiveTable, local_path
from cogwork.pipeline.archive.upkeep import foreign_files, listed_files, newest_metadata
from cogwork.pipeline.archive.work import remove
from cogwork.sync.closing import Closing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

__all__ = ("Archive",)


class Archive(Closing):
    """Tables by the names of their streams.

    Attributes:
        to: Where it is, as it was named, without a password.
    """

    def __init__(self, catalog: Catalog, to: str) -> None:
        """Take a catalog; `open` finds one.

        Args:
            catalog: Opened.
            to: Where it is, for messages.
        """
        self._catalog = catalog
        self.to = shown(to)

    @classmethod
    def open(cls, to: str, options: Mapping[str, str] | None = None, *, make: bool = False) -> Self:
        """Open an archive.

        Args:
            to: A directory, `catalog:NAME` as pyiceberg's configuration has it, or the URI of a
                catalog.
            options: Further properties of the catalog.
            make: Whether to make a directory an archive that is none yet.

        Raises:
            ArchiveMissing: The directory is none.
            CatalogError: The catalog cannot be opened.
        """
        return cls(open_catalog(to, options, make=make), to)

    def close(self) -> None:
        """Let the catalog go."""
        self._catalog.close()

    def tables(self) -> list[str]:
        """List the streams that have tables here."""
        with answers(self.to):
            try:
                names = self._catalog.list_tables(layout.NAMESPACE)
            except NoSuchNamespaceError:
                return []
            loaded = (self._catalog.load_table(name) for name in names)
            found = (table.properties.get(layout.STREAM) for table in loaded)
            return sorted(stream for stream in found if stream is not None)

    def table(self, stream: str) -> ArchiveTable:
        """Return a stream's table.

        Raises:
            TableMissing: There is none.
            ForeignTable: There is one of that name, and it is not this stream's.
        """
        with answers(self.to):
            try:
                found = self._catalog.load_table(_identifier(stream))
            except (NoSuchTableError, NoSuchNamespaceError):
                raise TableMissing(f"{self.to} has no table of stream/{stream}") from None
        return self._owned(found, stream)

    def make_table(
        self,
        stream: str,
        first: int,
        properties: Mapping[str, str] | None = None,
        *,
        adopt: bool = False,
    ) -> ArchiveTable:
        """Return a stream's table, which is made where there is none.

        Args:
            stream: The stream's name.
            first: The first offset that is to be in it.
            properties: What else a new table is to say.
            adopt: Whether to take over a table whose catalog was lost, from the metadata in the
                place of the new one.

        Raises:
            ForeignTable: There is one of that name, and it is not this stream's.
            PlaceTaken: There are files of another table where the new one would be, and they are
                not to be taken over, or cannot be.
        """
        with suppress(TableMissing):
            return self.table(stream)
        said = {
            **TABLE_PROPERTIES,
            layout.STREAM: stream,
            layout.FIRST: str(first),
            layout.NEXT: str(first),
            **(properties or {}),
        }
        with answers(self.to):
            # Another archiver may be quicker; that is a row of the same key in a database.
            with suppress(NamespaceAlreadyExistsError, IntegrityError):
                self._catalog.create_namespace_if_not_exists(layout.NAMESPACE)
            with suppress(TableAlreadyExistsError):  # another archiver was quicker
                made = self._catalog.create_table(
                    _identifier(stream),
                    layout.iceberg_schema(),
                    partition_spec=layout.partition_spec(),
                    properties=said,
                )
                self._look_at_place(ArchiveTable(made), adopt=adopt)
        return self.table(stream)

    def _look_at_place(self, made: ArchiveTable, *, adopt: bool) -> None:
        """Keep a new table only where no other one has files; else take that one, or nothing.

        Raises:
            PlaceTaken: Another table has files there.
        """
        if not isinstance(made.io, PyArrowFileIO):  # nor can its folder be swept
            return
        others = foreign_files(made, (path for path, _ in listed_files(made)))
        if not others:
            return
        self._catalog.drop_table(_identifier(made.stream))  # its files stay
        remove(made.io, made.table.metadata_location)
        if not adopt:
            raise PlaceTaken(
                f"{local_path(made.location)} has {len(others)} files of a table that {self.to} "
                "does not know: its catalog was lost, or is another one; --adopt takes it over"
            )
        newest = newest_metadata(made, others)
        self._catalog.register_table(_identifier(made.stream), newest)
        self.table(made.stream)  # raises where it is another stream's

    def files(self, stream: str) -> list[str]:
        """List the Parquet files of a stream, in the order of their offsets.

        Raises:
            TableMissing: There is no table of it.
        """
        return [file.path for file in self.table(stream).files()]

    def mark(self, stream: str) -> int:
        """Return the offset that is archived next.

        Raises:
            TableMissing: There is no table of it.
        """
        return self.table(stream).mark

    def _owned(self, table: Table, stream: str) -> ArchiveTable:
        owner = table.properties.get(layout.STREAM)
        name = ".".join(table.name())
        if owner is None:
            raise ForeignTable(f"table {name} in {self.to} was not made by an archive of ours")
        if owner != stream:
            raise ForeignTable(f"table {name} in {self.to} is that of stream/{owner}")
        return ArchiveTable(table)


def _identifier(stream: str) -> tuple[str, str]:
    return layout.NAMESPACE, layout.table_name_of(stream)

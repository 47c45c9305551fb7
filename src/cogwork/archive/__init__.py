"""The archive: streams as Apache Iceberg tables, each record in them once, and the way back."""

from cogwork.archive.archive import Archive
from cogwork.archive.archiver import Archiver, Settings
from cogwork.archive.errors import ArchiveError
from cogwork.archive.table import ArchiveTable, DataFile

__all__ = ("Archive", "ArchiveError", "ArchiveTable", "Archiver", "DataFile", "Settings")

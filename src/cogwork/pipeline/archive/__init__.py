"""The archive: streams as Apache Iceberg tables, each record in them once, and the way back."""

from cogwork.pipeline.archive.archive import Archive
from cogwork.pipeline.archive.archiver import Archiver, Settings
from cogwork.pipeline.archive.errors import ArchiveError
from cogwork.pipeline.archive.table import ArchiveTable, DataFile

__all__ = ("Archive", "ArchiveError", "ArchiveTable", "Archiver", "DataFile", "Settings")

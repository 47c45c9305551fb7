"""What can go wrong with an archive, each with the one line that people get to read."""

from __future__ import annotations

from cogwork.amqp.exceptions import CogworkError

__all__ = (
    "ArchiveError",
    "ArchiveMissing",
    "BadPlace",
    "CatalogError",
    "DataLost",
    "ForeignTable",
    "MarkMoved",
    "NothingThere",
    "PlaceTaken",
    "StreamMadeAnew",
    "TableMissing",
)


class ArchiveError(CogworkError):
    """Something is wrong with an archive."""


class BadPlace(ArchiveError, ValueError):
    """What is to be the first record, or the end, is no place in an archive.

    Attributes:
        bound: Which one it is: `from` or `to`.
    """

    def __init__(self, bound: str, text: str) -> None:
        what = "`first`" if bound == "from" else "`end`"
        super().__init__(
            f"{text!r:.80} is not a place in an archive (expected {what}, an offset, `today`, "
            "or a time as 06:00 or 2026-11-20T06:00)"
        )
        self.bound = bound


class ArchiveMissing(ArchiveError):
    """There is no archive where one is to be read."""

    condition = "amqp:not-found"


class TableMissing(ArchiveError):
    """The archive has no table of a stream."""

    condition = "amqp:not-found"


class NothingThere(ArchiveError):
    """The range that is asked for holds no record."""

    condition = "amqp:not-found"


class CatalogError(ArchiveError):
    """The catalog cannot be opened, or does not answer."""


class ForeignTable(ArchiveError):
    """A table of that name is there, and it is not this stream's."""


class PlaceTaken(ArchiveError):
    """A new table would lie in a folder that has files of another one."""


class StreamMadeAnew(ArchiveError):
    """The stream is not the one that is in the archive: it was deleted and made again."""


class DataLost(ArchiveError):
    """Records were given up by the stream before they were archived.

    Attributes:
        start: The first one that is missing.
        end: The first one that is left.
    """

    def __init__(self, stream: str, start: int, end: int) -> None:
        super().__init__(
            f"stream/{stream} has given up its records from {start} to before {end}, and they are "
            "not in the archive; --no-fail-on-data-loss goes on without them"
        )
        self.start = start
        self.end = end


class MarkMoved(ArchiveError):
    """Somebody else has committed meanwhile; what was written here is not in the table.

    Attributes:
        mark: Where the table goes on now.
    """

    def __init__(self, mark: int) -> None:
        super().__init__(f"another archiver has committed up to {mark}")
        self.mark = mark

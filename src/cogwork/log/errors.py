"""What can be wrong with a log and its files: each says where, and what to do about it."""

from __future__ import annotations

import os

from cogwork.amqp.errors import CogworkError

__all__ = (
    "DiskFull",
    "DiskTooSmall",
    "FileMissing",
    "ForeignFile",
    "LogBusy",
    "LogCorrupt",
    "LogError",
    "LogFailed",
    "LogLocked",
    "OffsetGone",
    "RecordTooLarge",
    "UnreadableRecord",
    "UnsupportedVersion",
)

MIB = 1 << 20


class LogError(CogworkError):
    """Something of a log."""


class LogCorrupt(LogError):
    """A file does not hold what was written to it.

    Attributes:
        file: Which one.
        position: Where in it, in octets from its beginning.
        reason: What is wrong there.
    """

    def __init__(self, file: str, position: int, reason: str) -> None:
        super().__init__(
            f"{file} is damaged at position {position}: {reason}; restore it from a copy, or move "
            "it away and do without what it holds"
        )
        self.file = file
        self.position = position
        self.reason = reason


class FileMissing(LogError):
    """A file is not there whose neighbours or successors need it.

    Attributes:
        file: Which one.
    """

    def __init__(self, file: str) -> None:
        super().__init__(f"{file} is missing: put it back, or start with an empty directory")
        self.file = file


class ForeignFile(LogError):
    """A file belongs to somebody else.

    Attributes:
        file: Which one.
        owner: Whose it is.
        expected: Who opens it.
    """

    def __init__(self, file: str, owner: str, expected: str) -> None:
        super().__init__(
            f"{file} belongs to {owner}, not to {expected}: each has a directory of its own"
        )
        self.file = file
        self.owner = owner
        self.expected = expected


class UnsupportedVersion(LogError):
    """A file has a format that this program does not know.

    Attributes:
        file: Which one.
        version: That of the file.
    """

    def __init__(self, file: str, version: int, supported: int) -> None:
        super().__init__(
            f"{file} has format version {version}; this program reads version {supported}: use the "
            "one that wrote it"
        )
        self.file = file
        self.version = version


class UnreadableRecord(LogError):
    """A record is whole, and says what whose it is does not understand.

    Attributes:
        file: In which file.
        position: Where in it, in octets from its beginning.
    """

    def __init__(self, file: str, position: int, reason: str) -> None:
        super().__init__(
            f"{file} has a record at position {position} that this program cannot read ({reason}): "
            "use the one that wrote it"
        )
        self.file = file
        self.position = position


class LogLocked(LogError):
    """Another process uses the directory."""

    def __init__(self, directory: str, holder: str) -> None:
        super().__init__(
            f"{directory} is in use by {holder}: one process has one data directory; stop the "
            "other, or name another directory"
        )


class DiskFull(LogError):
    """There is no space; nothing was appended. It goes on by itself once there is."""

    def __init__(self, directory: str, shortage: str = "") -> None:
        """Say why.

        Args:
            directory: Of the log.
            shortage: What else than space is missing for another file; empty for space.
        """
        if shortage:
            text = f"cannot create a file in {directory} ({shortage}): appends wait until it can"
        else:
            text = f"no space left for {directory}: appends are refused until there is some"
        super().__init__(text)


class DiskTooSmall(DiskFull):
    """There is no space to begin with."""

    def __init__(self, directory: str, free_bytes: int, least_bytes: int) -> None:
        """Say how much there is, and how much is needed."""
        super().__init__(directory)
        self.args = (
            f"no space left for {directory}: {free_bytes / MIB:.1f} MiB are free, and a data "
            f"directory needs at least {least_bytes // MIB} MiB",
        )


class LogBusy(LogError):
    """As much waits for the disk as may wait; nothing was appended, try again later."""

    def __init__(self, waiting_bytes: int) -> None:
        super().__init__(f"{waiting_bytes} octets wait for the disk: try again later")


class LogInUse(LogError):
    """The files of a log come and go more quickly than they are read from the outside.

    Attributes:
        directory: Where.
    """

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"the log in {directory} goes on more quickly than it is read: try again when less is "
            "written, or with the container stopped"
        )
        self.directory = directory


class LogFailed(LogError):
    """The disk has failed the log: what is not durable yet never will be, nor anything after it.

    A new start reads what is there; until then nothing is appended.

    Attributes:
        file: Which file.
        errno: What the operating system says.
    """

    def __init__(self, file: str, errno: int) -> None:
        super().__init__(
            f"cannot write {file}: {os.strerror(errno)}; nothing is appended until the container "
            "restarts"
        )
        self.file = file
        self.errno = errno


class RecordTooLarge(LogError):
    """A record does not fit any file; nothing was appended."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"a record of {size_bytes} octets is too large: {limit_bytes} fit")


class OffsetGone(LogError):
    """An offset below the first one was asked for: retention has given it up.

    Attributes:
        first: The first offset that is left.
    """

    def __init__(self, first: int) -> None:
        super().__init__(f"the segments begin at offset {first}: read from there")
        self.first = first

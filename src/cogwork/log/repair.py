"""What is done to the files of a write-ahead log before it is appended to again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.log.disk_queue import Operation
from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.file_name import TEMPORARY_NAME, file_name
from cogwork.log.position import number_of, position_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from cogwork.log.directory import Directory
    from cogwork.log.recovery import Recovery
    from cogwork.log.reserve import Reserve

__all__ = ("Repaired", "repair")

_ZEROS = bytes(1 << 20)


class Repaired(NamedTuple):
    """Where the log goes on.

    Attributes:
        number: In which file.
        fd: The file's descriptor.
        position: Where in it.
    """

    number: int
    fd: int
    position: int


def repair(
    directory: Directory, recovery: Recovery, reserve: Reserve
) -> Generator[Operation, None, Repaired]:
    """Cut off what comes after the end of a log, or make its first file.

    Whatever was written behind the end must go: records that are written up to there later could
    run into an old one that fits. And what was read may not be on the disk, where a process was
    stopped and not the machine: what no mark calls durable is written once more and synchronised,
    for it counts as durable from now on. To synchronise it would not do: after a fault of the disk
    the kernel takes for written what is not.

    Files from before the oldest that is needed stay: the mark that says so may be one of those that
    are cut off, and only the next one makes it sure.

    Args:
        directory: Where.
        recovery: Has read all records.
        reserve: Makes files.
    """
    directory.remove(TEMPORARY_NAME)
    if recovery.is_empty:
        fd = yield from reserve.making(1, None)
        return Repaired(1, fd, HEADER_BYTES)
    number = number_of(recovery.end_lsn)
    position = position_of(recovery.end_lsn)
    for later in reversed(recovery.numbers):
        if later > number:
            directory.remove(file_name(later))
            yield Operation.sync_of(directory.fd)
    # What the oldest one follows is not needed, and may be gone: the mark need not be in its file.
    durable_number = number_of(recovery.mark.durable_lsn)
    for each in range(max(durable_number, recovery.mark.oldest_number), number + 1):
        name = file_name(each)
        is_proved = each == durable_number
        start = position_of(recovery.mark.durable_lsn) if is_proved else HEADER_BYTES
        size_bytes = directory.size_of(name)
        fd = directory.open(name, for_writing=True)
        try:
            end = position if each == number else size_bytes
            yield from _write_again(directory, fd, start, end)
            yield from _clear(directory, fd, end, size_bytes)
            yield Operation.sync_of(fd)
        except BaseException:
            directory.close_file(fd)
            raise
        if each != number:
            directory.close_file(fd)
    return Repaired(number, fd, position)


def _write_again(
    directory: Directory, fd: int, position: int, end: int
) -> Generator[Operation, None, None]:
    while position < end:
        data = directory.read_at(fd, position, min(len(_ZEROS), end - position))
        yield Operation(fd, position, data)
        position += len(data)


def _clear(
    directory: Directory, fd: int, position: int, end: int
) -> Generator[Operation, None, None]:
    """Write zeros over whatever is not zero from a position on."""
    while position < end:
        size_bytes = min(len(_ZEROS), end - position)
        if directory.read_at(fd, position, size_bytes) != _ZEROS[:size_bytes]:
            yield Operation(fd, position, _ZEROS[:size_bytes])
        position += size_bytes

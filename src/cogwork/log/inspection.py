"""What files of a log hold, for people: read from the outside, in use or not, and never changed.

A log that is in use goes on meanwhile: its newest records may be missing here, and its end torn;
files that nobody needs any more go, and are left out.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from cogwork.log.directory import Directory
from cogwork.log.errors import LogCorrupt, LogError, LogInUse
from cogwork.log.file_header import HEADER_BYTES, FileHeader, check_header
from cogwork.log.file_name import file_number
from cogwork.log.header import version_of
from cogwork.log.mark import KIND_END, LOG_GROUP, find_newest_mark
from cogwork.log.position import lsn_of, number_of
from cogwork.log.record import scan_records
from cogwork.log.recovery import Recovery
from cogwork.log.segment import SUFFIX, Segment
from cogwork.log.segment_header import SEGMENT_VERSION

__all__ = ("files_below", "inspect_file", "verify")

WAL_SUFFIX = ".wal"

ATTEMPTS = 3
"""To read a log whose files change."""


def files_below(path: Path) -> list[Path]:
    """List the log files at or below a path, sorted.

    Raises:
        OSError: A directory cannot be read: what is in it would be taken for sound.
    """
    if not path.is_dir():
        return [path]
    found = (
        Path(directory, name)
        for directory, _, names in os.walk(path, onerror=_refuse)
        for name in names
    )
    return sorted(file for file in found if file.suffix in {WAL_SUFFIX, SUFFIX})


def _refuse(error: OSError) -> None:
    """Have a directory that cannot be read be no empty one; one may have gone since."""
    if not isinstance(error, FileNotFoundError):
        raise error


def inspect_file(file: Path) -> dict[str, Any]:
    """Return what a file holds.

    Args:
        file: A segment, or a file of a write-ahead log.

    Returns:
        The facts, by name; `format` is `write-ahead log` or `segment`.

    Raises:
        LogError: It is none, or damaged at its ends.
        FileNotFoundError: It has gone, as where the container needs it no more.
    """
    if file.suffix == SUFFIX:
        return _inspect_segment(file)
    data = file.read_bytes()
    header = FileHeader.decode(data, str(file))
    groups: Counter[int] = Counter()
    position = HEADER_BYTES
    is_ended = False
    for record in scan_records(data, HEADER_BYTES, header.number):
        position += record.size_bytes
        if record.group != LOG_GROUP:
            groups[record.group] += 1
        elif record.kind == KIND_END:
            is_ended = True
            break
    mark = find_newest_mark(data, header.number, header.key)
    return {
        "file": str(file),
        "format": "write-ahead log",
        "version": version_of(data),
        "container": header.container_id,
        "number": header.number,
        "size_bytes": len(data),
        "used_bytes": position,
        "records": groups.total(),
        "groups": {str(group): count for group, count in sorted(groups.items())},
        "end_lsn": lsn_of(header.number, position),
        "durable_lsn": mark.durable_lsn if mark is not None else None,
        "oldest_file_needed": mark.oldest_number if mark is not None else None,
        "is_ended": is_ended,
    }


def _inspect_segment(file: Path) -> dict[str, Any]:
    with Directory(file.parent, is_to_be_made=False) as directory:
        segment = Segment(directory, file.name)
    footer = segment.footer
    return {
        "file": str(file),
        "format": "segment",
        "version": SEGMENT_VERSION,
        "stream": segment.header.stream_id.hex(),
        "size_bytes": segment.size_bytes,
        "first_offset": footer.first_offset,
        "next_offset": footer.next_offset,
        "records": footer.next_offset - footer.first_offset,
        "blocks": footer.block_count,
        "index_entries": footer.index_count,
        "first_time_ms": footer.first_time_ms,
        "last_time_ms": footer.last_time_ms,
    }


def verify(path: Path) -> list[LogError]:
    """Check a file, or all log files below a directory and how they fit together.

    Args:
        path: Of the file or the directory.

    Returns:
        What is wrong.
    """
    problems: list[LogError] = []
    files = files_below(path)
    for directory in sorted({file.parent for file in files}):
        here = [file for file in files if file.parent == directory]
        segments = [file for file in here if file.suffix == SUFFIX]
        if len(segments) < len(here):
            check, of = (_verify_log, directory) if path.is_dir() else (_verify_log_file, path)
            _collect(problems, check, of)
        before: Segment | None = None
        for file in segments:
            before = _collect(problems, _verify_segment, file, before)
    return problems


def _collect(problems: list[LogError], check: Any, *arguments: Any) -> Any:  # noqa: ANN401  # any check
    """Return what a check does; a file that has gone since it was listed has no problem."""
    try:
        return check(*arguments)
    except FileNotFoundError:
        return None
    except LogError as error:
        problems.append(error)
        return None


def _verify_log(path: Path) -> None:
    """Check a log as a start would read it; once more where its files have changed meanwhile."""
    for _ in range(ATTEMPTS):
        files = _logs_in(path)
        try:
            _read_log(path, files)
        except (LogError, FileNotFoundError):
            if _logs_in(path) == files:
                raise
        else:
            return
    raise LogInUse(str(path))


def _logs_in(path: Path) -> list[Path]:
    return sorted(path.glob(f"*{WAL_SUFFIX}"))


def _read_log(path: Path, files: list[Path]) -> None:
    if files:
        newest = files[-1]
        header = FileHeader.decode(newest.read_bytes(), str(newest))
        with Directory(path, is_to_be_made=False) as directory:
            for _ in Recovery(directory, header.container_id).records():
                pass


def _verify_log_file(file: Path) -> None:
    """Check one of a log's files alone."""
    data = file.read_bytes()
    header = FileHeader.decode(data, str(file))
    number = file_number(file.name)
    if number is not None:
        check_header(data, str(file), FileHeader(header.container_id, number))
    facts = inspect_file(file)
    durable_lsn = facts["durable_lsn"] or 0
    if number_of(durable_lsn) == header.number and durable_lsn > facts["end_lsn"]:
        reason = "a record that was durable cannot be read"
        raise LogCorrupt(str(file), facts["used_bytes"], reason)


def _verify_segment(file: Path, before: Segment | None) -> Segment:
    with Directory(file.parent, is_to_be_made=False) as directory:
        segment = Segment(directory, file.name)
        for _ in segment.verify():
            pass
    stream_id = before.header.stream_id if before is not None else segment.header.stream_id
    segment.check_place(stream_id, before.next_offset if before is not None else None)
    return segment

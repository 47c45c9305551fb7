"""Checks of the disk where a data directory is: its room, and how long it takes to be durable."""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.cli.doctor.finding import failed, ok, warned
from cogwork.cli.terminal.tables import in_bytes
from cogwork.log.wal import LEAST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.cli.doctor.finding import Finding

__all__ = ("check_disk", "room")

AMPLE_BYTES = 1 << 30
"""What a log takes before it has its oldest records written anew, with as much for streams."""

FREE_SHARE_WARN = 0.05

SYNCS = 15
SYNC_BYTES = 4096
SYNC_WARN_S, SYNC_SLOW_S = 0.02, 0.2
"""A disk of an NVMe takes less than a millisecond, one that turns about ten."""

VOLATILE = {"tmpfs", "ramfs"}
REMOTE = {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"}


def check_disk(directory: Path) -> Iterator[Finding]:
    """Check the disk of a data directory; it need not be there yet.

    A file is written there, synchronised some times, and removed.

    Args:
        directory: The data directory.
    """
    subject = str(directory)
    place = next(each for each in (directory, *directory.parents) if each.exists())
    try:
        found = os.statvfs(place)
        took_s = _sync_s(place)
    except OSError as error:
        yield failed(
            "disk",
            subject,
            f"cannot write in '{place}': {error.strerror}",
            "the container does not start",
            "give the directory to the user that runs the container",
        )
        return
    yield room(subject, found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
    yield _file_system(subject, place)
    yield _pace(subject, took_s)


def room(subject: str, free_bytes: int, total_bytes: int) -> Finding:
    """Judge how much is free.

    Args:
        subject: Whose disk it is.
        free_bytes: What is free.
        total_bytes: How large the file system is.
    """
    told = f"{in_bytes(free_bytes)} of {in_bytes(total_bytes)} are free"
    meaning = "queues and streams on disk take no messages once it is full"
    advice = "free some, or move the data directory to a larger disk"
    if free_bytes < LEAST_BYTES:
        return failed("disk", subject, told, meaning, advice)
    if free_bytes < AMPLE_BYTES or free_bytes < FREE_SHARE_WARN * total_bytes:
        return warned("disk", subject, told, meaning, advice)
    return ok("disk", subject, told)


def _sync_s(directory: Path) -> float:
    """Return how long a write takes to be durable: the median, in seconds."""
    took_s = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(SYNCS):
            began_s = time.perf_counter()
            os.pwrite(file.fileno(), os.urandom(SYNC_BYTES), 0)
            os.fdatasync(file.fileno())
            took_s.append(time.perf_counter() - began_s)
    return statistics.median(took_s)


def _pace(subject: str, took_s: float) -> Finding:
    told = f"a write is durable in {took_s * 1000:.2f} ms (median of {SYNCS})"
    if took_s < SYNC_WARN_S:
        return ok("fsync", subject, told)
    judge = failed if took_s >= SYNC_SLOW_S else warned
    return judge(
        "fsync",
        subject,
        told,
        "each durable message waits at least so long for its confirmation",
        "use a local disk (an SSD), which nothing else keeps busy",
    )


def _file_system(subject: str, place: Path) -> Finding:
    kind = _kind_of(place)
    if kind in VOLATILE:
        return warned(
            "file system",
            subject,
            kind,
            "it is memory: a restart of the machine loses what was to be durable",
            "put the data directory on a disk",
        )
    if kind in REMOTE:
        return warned(
            "file system",
            subject,
            kind,
            "a network that hangs stops queues and streams, and locks may not hold",
            "use a local disk in each machine, and replicate between containers",
        )
    return ok("file system", subject, kind or "unknown")


def _kind_of(place: Path) -> str:
    """Return the type of the file system; empty where the system does not tell."""
    resolved, found = place.resolve(), ("", "")
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, point, kind, *_ = line.split(" ")
            # Blanks of a path are octal there: proc(5).
            mounted = point.replace("\\040", " ")
            if resolved.is_relative_to(mounted) and len(mounted) >= len(found[0]):
                found = (mounted, kind)
    return found[1]

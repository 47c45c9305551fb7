"""A write-ahead log on disks that are full or fail."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import suppress
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from logs import NO_SPACE, Log, opened
from wal_files import SMALL, damage, file_of, fill

from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import DiskFull, FileMissing, LogBusy, LogCorrupt, LogFailed
from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.position import lsn_of, position_of

if TYPE_CHECKING:
    from pathlib import Path


def test_without_space_for_another_file_appends_are_refused_until_there_is_some(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    log.disk.allocation_error = NO_SPACE
    lsns: list[int] = []

    def put_for_ever() -> None:
        while True:
            lsns.extend(log.put(b"x" * 500))

    with pytest.raises(DiskFull):
        put_for_ever()
    assert log.wal.is_full
    assert len(lsns) > 7
    with pytest.raises(DiskFull):
        log.wal.append(1, 1, 0, 0, b"x")
    assert log.wal.read(lsns[0]).payload == b"x" * 500
    log.wal.tick(10.0)
    log.queue.finish()
    assert log.wal.is_full
    log.disk.allocation_error = 0
    log.wal.tick(10.5)
    assert log.wal.is_full, "it is tried again once a second"
    log.wal.tick(11.0)
    log.queue.finish()
    assert log.events == [True, False]
    log.put(b"after")
    log.close()
    assert opened(tmp_path, file_bytes=SMALL) == [b"x" * 500] * len(lsns) + [b"after"]


def test_that_the_present_file_is_the_last_one_is_told_while_it_has_room(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    log.put(b"x" * 500, group=7)
    assert (log.lows, log.wal.oldest_groups()) == ([], [])
    log.disk.allocation_error = NO_SPACE
    while not log.lows:
        log.put(b"x" * 500, group=8)
    assert log.lows == [True]
    assert not log.wal.is_full
    room_bytes = log.wal.room_bytes
    assert room_bytes > SMALL // 2
    log.put(b"y" * 100)
    assert room_bytes - SMALL // 4 < log.wal.room_bytes < room_bytes - 100
    assert log.wal.oldest_groups() == [7, 8]
    log.wal.tick(10.0)
    log.queue.finish()
    assert log.lows == [True, True], "with each attempt"
    log.disk.allocation_error = 0
    log.wal.tick(20.0)
    log.queue.finish()
    assert log.lows == [True, True, False]
    assert log.events == [], "it was never full"
    log.close()


def test_a_real_lack_of_space_is_met_as_a_pretended_one(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL // 2, before[1]))
    try:
        for now in range(5):
            with suppress(DiskFull):
                fill(log, 2)
            log.wal.tick(float(now))
            log.queue.finish()
        assert log.wal.is_full
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.wal.tick(10.0)
    log.queue.finish()
    assert log.events == [True, False]
    count = len(fill(log, 20))
    log.close()
    found = opened(tmp_path, file_bytes=SMALL)
    assert found[-count:] == [bytes([number]) * 512 for number in range(count)]


def test_space_that_a_group_lets_go_is_enough(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    fill(log, 6)
    log.disk.allocation_error = NO_SPACE
    with pytest.raises(DiskFull):
        fill(log, 50)
    log.wal.low_water(1, log.wal.end_lsn)
    log.disk.allocation_error = 0  # a file that is used again has its space already
    for second in range(3):
        log.wal.tick(float(second))
        log.queue.finish()
    assert not log.wal.is_full
    fill(log, 5)
    log.close()


def test_a_write_without_space_is_done_later_and_loses_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"first")
    before = log.wal.durable_lsn
    log.disk.write_errors = [NO_SPACE, 0, NO_SPACE]
    for payload in (b"second", b"third", b"fourth"):
        log.wal.append(1, 1, 0, 0, payload)
        log.wal.flush()
    log.queue.finish()
    assert log.wal.durable_lsn == before, "the third is written, and the second is not"
    with pytest.raises(DiskFull):
        log.wal.append(1, 1, 0, 0, b"refused")
    log.wal.tick(1.0)
    log.queue.finish()
    assert log.events == [True, False]
    assert log.wal.durable_lsn > before
    log.put(b"fifth")
    log.close()
    assert opened(tmp_path) == [b"first", b"second", b"third", b"fourth", b"fifth"]


@pytest.mark.parametrize("is_sync", [False, True])
def test_an_error_of_the_disk_ends_the_log_until_a_new_start(tmp_path: Path, is_sync: bool) -> None:
    log = Log(tmp_path)
    (lsn,) = log.put(b"first")
    before = log.wal.durable_lsn
    if is_sync:
        log.disk.sync_error = NO_SPACE  # also this: what was written may be lost
    else:
        log.disk.write_errors = [errno.EIO]
    log.put(b"second")
    log.disk.sync_error = 0
    assert [type(event) for event in log.events] == [LogFailed]
    with pytest.raises(LogFailed):
        log.wal.append(1, 1, 0, 0, b"third")
    log.wal.flush()
    log.wal.tick(5.0)
    log.queue.finish()
    assert log.wal.durable_lsn == before
    assert log.wal.read(lsn).payload == b"first"
    log.close()
    assert opened(tmp_path)[0] == b"first"


def test_a_log_that_has_failed_does_not_say_that_it_has_space_again(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    log.disk.allocation_error = NO_SPACE
    with pytest.raises(DiskFull):
        fill(log, 50)
    log.disk.write_errors = [errno.EIO]
    log.wal.tick(10.0)  # a mark
    log.queue.finish()
    log.disk.allocation_error = 0
    log.wal.tick(20.0)
    log.queue.finish()
    full, failure = log.events
    assert full is True
    assert isinstance(failure, LogFailed)
    log.close()


def test_what_waits_for_the_disk_is_bounded(tmp_path: Path) -> None:
    log = Log(tmp_path, waiting_bytes_max=10_000)
    for _ in range(10):
        log.wal.append(1, 1, 0, 0, bytes(1000))
    with pytest.raises(LogBusy):
        log.wal.append(1, 1, 0, 0, bytes(1000))
    log.put()
    log.put(bytes(1000))
    log.close()


def test_a_disk_thread_that_has_no_room_is_asked_again(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.disk.disk.close()
    log.disk.disk = type(log.disk.disk)(1000)
    for _ in range(50):
        log.wal.append(1, 1, 0, 0, bytes(900))
        log.wal.flush()
    while log.wal.waiting_bytes:
        log.queue.wait()
    log.close()
    assert len(opened(tmp_path)) == 50


def test_a_full_disk_at_the_very_start_is_said(tmp_path: Path) -> None:
    log = Log(tmp_path / "one")
    log.disk.allocation_error = NO_SPACE
    wal = type(log.wal)(Directory(tmp_path / "two"), DiskQueue(log.disk), "north")
    with pytest.raises(DiskFull):
        list(wal.recover())
    wal.close()
    log.disk.allocation_error = 0
    assert list((tmp_path / "two").glob("*.wal")) == []
    log.close()


def test_a_place_without_a_record_is_said(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"x")
    with pytest.raises(LogCorrupt):
        log.wal.read(lsn_of(1, HEADER_BYTES + 1))
    with pytest.raises(FileMissing):
        log.wal.read(lsn_of(99, HEADER_BYTES))
    log.close()


def test_a_damaged_length_has_no_more_read_than_there_is(tmp_path: Path) -> None:
    log = Log(tmp_path)
    lsn = log.put(b"x" * 5000)[0]
    damage(file_of(tmp_path), position_of(lsn) + 4)  # now it has 268,440,456 octets
    asked: list[int] = []

    def read_at(directory: Directory, fd: int, position: int, size_bytes: int) -> bytes:
        asked.append(size_bytes)
        return os.pread(fd, size_bytes, position)

    with patch.object(Directory, "read_at", read_at), pytest.raises(LogCorrupt):
        log.wal.read(lsn)
    assert max(asked) <= file_of(tmp_path).stat().st_size
    log.close()


def test_a_copy_that_is_cut_short_is_not_taken_for_all_there_was(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"x")
    lsn = log.put(b"y")[0]
    log.close()
    os.truncate(file_of(tmp_path), position_of(lsn))
    with pytest.raises(LogCorrupt, match="cut short") as caught:
        Log(tmp_path)
    assert caught.value.position == position_of(lsn)


def test_a_file_that_the_disk_cannot_read_is_named(tmp_path: Path) -> None:
    Log(tmp_path).close()
    error = OSError(errno.EIO, "Input/output error")
    with patch("os.pread", side_effect=error), pytest.raises(OSError, match="error") as caught:
        Log(tmp_path)
    assert str(caught.value.filename) == str(file_of(tmp_path, 2))


def test_a_directory_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    error = OSError(errno.ENOLCK, "No locks available")
    with patch("fcntl.flock", side_effect=error), pytest.raises(OSError, match="locks") as caught:
        Log(tmp_path)
    assert caught.value.filename == str(tmp_path / "lock")

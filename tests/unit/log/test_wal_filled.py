"""The write-ahead log's next file is filled ahead, where the log is synchronised often."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from logs import NO_SPACE, Log, opened
from wal_files import file_of

from cogwork.dataplane.disk import Disk
from cogwork.log import wal as wal_module
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import LogBusy, LogFailed
from cogwork.log.position import number_of
from cogwork.log.reserve import FILL_BYTES

if TYPE_CHECKING:
    from pathlib import Path

FILE_BYTES = 4 * FILL_BYTES
OFTEN = 20


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal_module, "FILL_AFTER_FLUSHES", OFTEN)


def written_bytes(file: Path) -> int:
    """Return how much of a file was written, from its beginning."""
    with file.open("rb") as opened_file:
        return os.lseek(opened_file.fileno(), 0, os.SEEK_HOLE)


def put_often(log: Log, count: int = OFTEN) -> list[bytes]:
    """Append small records, one a flush."""
    payloads = [b"record %d" % number for number in range(count)]
    for payload in payloads:
        log.put(payload)
    return payloads


def test_a_log_that_is_synchronised_often_goes_on_in_a_filled_file(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    expected = put_often(log, OFTEN - 1)
    assert number_of(log.wal.end_lsn) == 1
    log.put(b"enough")
    assert number_of(log.wal.end_lsn) == 2, "without waiting for the first file's end"
    assert written_bytes(file_of(tmp_path, 2)) == FILE_BYTES
    log.put(b"in the second")
    log.close()
    assert opened(tmp_path, file_bytes=FILE_BYTES) == [*expected, b"enough", b"in the second"]


def test_all_is_durable_where_nothing_follows_in_a_file_that_was_filled(tmp_path: Path) -> None:
    """Some wait for the end of the log, and append nothing themselves."""
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    put_often(log)
    assert number_of(log.wal.end_lsn) == 2
    assert log.wal.durable_lsn < log.wal.end_lsn
    for now_s in (1.0, 2.0, 3.0):
        log.wal.tick(now_s)
        log.queue.finish()
        assert log.wal.durable_lsn == log.wal.end_lsn
    assert log.wal.end_lsn == (end_lsn := log.wal.durable_lsn), "one mark is enough"
    log.wal.tick(4.0)
    log.queue.finish()
    assert log.wal.end_lsn == end_lsn
    log.close()


def test_large_flushes_fill_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    for _ in range(2 * OFTEN):
        log.put(bytes(FILE_BYTES // (OFTEN // 2)))
    number = number_of(log.wal.end_lsn)
    assert number >= 4
    assert written_bytes(file_of(tmp_path, number + 1)) < FILL_BYTES
    log.close()


def test_a_file_that_was_used_before_is_not_filled_again(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    put_often(log)
    assert number_of(log.wal.end_lsn) == 2
    log.wal.low_water(1, log.wal.end_lsn)
    put_often(log, 2 * OFTEN)  # the third is filled, and the first becomes the fourth
    log.put(bytes(FILE_BYTES // 2))
    log.put(bytes(FILE_BYTES // 2))
    assert number_of(log.wal.end_lsn) == 3
    before = log.disk.disk.write_count
    put_often(log, 2 * OFTEN)
    assert number_of(log.wal.end_lsn) == 3, "it is as good as the next one"
    assert log.disk.disk.write_count == before + 2 * OFTEN
    log.close()


def test_a_log_that_is_full_takes_its_next_file_half_filled(tmp_path: Path) -> None:
    aside = DiskQueue(Disk())
    log = Log(tmp_path, file_bytes=FILE_BYTES, aside=aside)
    aside.finish()
    expected = put_often(log)
    large = [bytes([number]) * (FILE_BYTES // 4) for number in range(6)]
    for payload in large[:3]:
        log.put(payload)
    with pytest.raises(LogBusy):
        log.wal.append(1, 1, 0, 0, large[3])
    aside.wait()
    for payload in large[3:]:
        log.put(payload)
    log.close()
    aside.close()
    assert opened(tmp_path, file_bytes=FILE_BYTES) == expected + large


def test_a_stop_does_not_wait_until_all_is_filled(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=64 * FILL_BYTES)
    put_often(log, OFTEN - 1)
    log.wal.append(1, 1, 0, 0, b"last")
    log.wal.flush()
    log.queue.wait()
    log.close()
    assert written_bytes(file_of(tmp_path, 2)) < 64 * FILL_BYTES


def test_nothing_is_written_to_files_that_are_closed(tmp_path: Path) -> None:
    aside = DiskQueue(Disk())
    log = Log(tmp_path, file_bytes=FILL_BYTES, aside=aside)
    aside.finish()
    expected = put_often(log)
    assert not aside.is_idle, "the next file is being filled, and will be ready at once"
    log.wal.close()
    assert log.queue.is_idle
    log.queue.close()
    aside.close()
    assert opened(tmp_path, file_bytes=FILL_BYTES) == expected


def test_where_the_file_system_has_no_space_for_zeros_it_goes_on_without(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    put_often(log, OFTEN - 1)
    log.disk.write_errors = [0, NO_SPACE]
    log.put(b"enough")
    assert number_of(log.wal.end_lsn) == 2
    assert log.events == []
    log.close()


def test_zeros_that_the_disk_does_not_take_end_the_log(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    expected = put_often(log, OFTEN - 1)
    log.disk.write_errors = [0, errno.EIO]
    log.put(b"enough")
    (failure,) = log.events
    assert isinstance(failure, LogFailed)
    with pytest.raises(LogFailed):
        log.wal.append(1, 1, 0, 0, b"nothing more")
    log.close()
    assert opened(tmp_path, file_bytes=FILE_BYTES) == [*expected, b"enough"]

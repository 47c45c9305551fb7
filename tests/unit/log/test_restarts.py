"""A log that is begun again on the same machine, after faults of its disk, or with lies in it."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from logs import FaultyDisk, Log
from wal_files import file_of

from cogwork.log.file_header import FIRST_KEY, HEADER_BYTES, FileHeader
from cogwork.log.header import HeaderFormat
from cogwork.log.mark import KIND_MARK, MARK_BYTES, Mark
from cogwork.log.position import lsn_of, number_of, position_of
from cogwork.log.record import OVERHEAD_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.log.disk_queue import Octets

FILE_BYTES = 1 << 16


def test_what_a_failed_disk_has_dropped_is_written_again_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    submit = FaultyDisk.submit

    def recorded(disk: FaultyDisk, fd: int, offset: int, data: Octets, sync: bool) -> int:
        octets = data if isinstance(data, bytes) else b"".join(data)
        if disk.sync_error:  # Linux counts these pages as clean from now on, and has them still
            os.pwrite(fd, octets, offset)
        written.append(octets)
        return submit(disk, fd, offset, data, sync)

    monkeypatch.setattr(FaultyDisk, "submit", recorded)
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    log.put(b"one")
    log.disk.sync_error = errno.EIO
    log.put(b"two", b"three" * 5_000)
    assert len(log.events) == 1
    log.abandon()
    written.clear()
    again = Log(tmp_path, file_bytes=FILE_BYTES)
    assert [each[:5] for each in again.payloads()] == [b"one", b"two", b"three"]
    octets = b"".join(written)
    assert b"two" in octets
    assert b"three" * 5_000 in octets
    assert b"one" not in octets
    again.close()


@pytest.mark.parametrize("is_torn", [False, True])
@pytest.mark.parametrize("claim", ["oldest", "durable"])
def test_a_mark_that_somebody_has_sent_is_none(tmp_path: Path, claim: str, is_torn: bool) -> None:
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    for number in range(5):
        log.put(b"%d" % number * 20_000)
    end_lsn = log.wal.end_lsn
    number = number_of(end_lsn)
    assert number > 1
    false = Mark(0, number) if claim == "oldest" else Mark(lsn_of(number, 60_000), 1)
    log.put(b"".join(false.encode(end_lsn + OVERHEAD_BYTES, KIND_MARK, FIRST_KEY)))
    end = position_of(log.wal.end_lsn)
    log.abandon()
    file = file_of(tmp_path, number)
    torn = bytearray(file.read_bytes())
    torn[end - MARK_BYTES :] = bytes(len(torn) - end + MARK_BYTES)
    if is_torn:  # the record's head did not get to the disk, what was sent did
        torn[position_of(end_lsn) : position_of(end_lsn) + 4] = bytes(4)
    file.write_bytes(torn)
    again = Log(tmp_path, file_bytes=FILE_BYTES)
    assert [each[:1] for each in again.payloads()[:5]] == [b"0", b"1", b"2", b"3", b"4"]
    assert len(again.payloads()) == 5 + (not is_torn)
    again.close()


def test_a_log_of_version_1_is_read_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", lambda _: FIRST_KEY)
    log = Log(tmp_path, file_bytes=FILE_BYTES)
    for number in range(5):
        log.put(b"%d" % number * 20_000)
    log.abandon()
    former = HeaderFormat(b"cogwkwal", 1, HEADER_BYTES, "")
    for file in tmp_path.glob("*.wal"):
        data = file.read_bytes()
        fields = FileHeader.decode(data, str(file)).encode()[16:97]  # all but the key
        file.write_bytes(former.encode(fields) + data[HEADER_BYTES:])
        assert file.read_bytes()[8:10] == bytes([0, 1])
    monkeypatch.undo()
    for count in (5, 10):
        again = Log(tmp_path, file_bytes=FILE_BYTES)
        assert [each[:1] for each in again.payloads()] == [b"%d" % n for n in range(count)]
        for number in range(count, count + 5):
            again.put(b"%d" % number * 20_000)
        again.abandon()

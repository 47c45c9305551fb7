"""The write-ahead log: appends, recovery, files that come and go, and disks that fail."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from logs import NO_SPACE, Log, opened

from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import (
    DiskFull,
    FileMissing,
    ForeignFile,
    LogBusy,
    LogCorrupt,
    LogFailed,
    LogLocked,
    RecordTooLarge,
    UnsupportedVersion,
)
from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.mark import MARK_BYTES
from cogwork.log.position import lsn_of, number_of, position_of
from cogwork.log.record import OVERHEAD_BYTES, Record

SMALL = 4096


def file_of(path: Path, number: int = 1) -> Path:
    return path / f"{number:010d}.wal"


def damage(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 0x10
    file.write_bytes(data)


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert log.found == []
    first = log.wal.append(7, 200, 2**63, 2**64 - 1, b"one")
    second = log.wal.append(2**32 - 1, 0, 0, 0, b"")
    assert second == first + OVERHEAD_BYTES + 3
    assert log.wal.durable_lsn <= first
    log.wal.flush()
    log.queue.finish()
    assert log.wal.durable_lsn > second
    log.close()
    expected = [
        Record(first, 7, 200, 2**63, 2**64 - 1, b"one"),
        Record(second, 2**32 - 1, 0, 0, 0, b""),
    ]
    again = Log(tmp_path)
    assert again.found == expected
    assert [again.wal.read(record.lsn) for record in expected] == expected
    again.close()


def test_what_is_appended_after_a_restart_follows(tmp_path: Path) -> None:
    for turn in range(3):
        found = opened(tmp_path, lambda log, turn=turn: log.put(b"%d" % turn))
        assert found == [b"%d" % each for each in range(turn)]


def test_durable_is_told_in_order_and_covers_what_was_flushed(tmp_path: Path) -> None:
    log = Log(tmp_path)
    told: list[int] = []
    log.wal.on_durable = told.append
    lsns = []
    for _ in range(20):
        lsns.append(log.wal.append(1, 1, 0, 0, b"x" * 100))
        log.wal.flush()
    assert told == []
    log.queue.finish()
    assert told == sorted(set(told))
    assert told[-1] == log.wal.durable_lsn > lsns[-1]
    log.close()


def test_many_flushes_share_a_synchronisation(tmp_path: Path) -> None:
    log = Log(tmp_path)
    before = log.disk.disk.sync_count
    for _ in range(200):
        log.wal.append(1, 1, 0, 0, b"x")
        log.wal.flush()
    log.queue.finish()
    assert 1 <= log.disk.disk.sync_count - before <= 200
    assert log.disk.disk.write_count >= 200
    log.close()


# -- the end of the log


def test_a_torn_end_is_cut_off_at_every_octet(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", file_bytes=SMALL)
    log.put(b"first")
    (lsn,) = log.put(b"second")
    end = position_of(lsn) + OVERHEAD_BYTES + len(b"second")
    log.abandon()
    whole = file_of(tmp_path / "log").read_bytes()
    for cut in range(position_of(lsn), end):
        torn = tmp_path / f"torn-{cut}"
        torn.mkdir()
        file_of(torn).write_bytes(whole[:cut] + bytes(len(whole) - cut))
        assert opened(torn, lambda log: log.put(b"third"), file_bytes=SMALL) == [b"first"]
        assert opened(torn, file_bytes=SMALL) == [b"first", b"third"]


def test_what_lies_behind_a_torn_record_never_comes_back(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.put(b"first")
    torn = log.wal.append(1, 1, 0, 0, b"gone")
    log.wal.append(1, 1, 0, 0, b"behind")
    log.wal.flush()
    log.abandon()
    damage(file_of(tmp_path), position_of(torn))
    again = Log(tmp_path)
    assert again.payloads() == [b"first"]
    # As long as what was lost: what comes next in the file would fit what lay behind it.
    again.wal.append(1, 1, 0, 0, b"here")
    again.wal._close_buffer()  # a flush without its mark, which would hide it
    again.wal.flush()
    again.abandon()
    assert opened(tmp_path) == [b"first", b"here"]


def test_damage_below_what_was_durable_is_refused_with_its_place(tmp_path: Path) -> None:
    log = Log(tmp_path)
    (first,) = log.put(b"first")
    log.put(b"second")
    log.put(b"third")
    log.abandon()
    damage(file_of(tmp_path), position_of(first) + OVERHEAD_BYTES)
    with pytest.raises(LogCorrupt) as caught:
        Log(tmp_path)
    assert caught.value.file == str(file_of(tmp_path))
    assert caught.value.position == position_of(first)
    assert str(position_of(first)) in str(caught.value)


def test_after_an_orderly_end_every_record_is_known_to_be_durable(tmp_path: Path) -> None:
    lsns: list[int] = []
    opened(tmp_path, lambda log: lsns.extend(log.put(b"only")))
    damage(file_of(tmp_path), position_of(lsns[0]) + OVERHEAD_BYTES)
    with pytest.raises(LogCorrupt):
        Log(tmp_path)


def test_time_marks_what_has_become_durable_once(tmp_path: Path) -> None:
    log = Log(tmp_path)
    (lsn,) = log.put(b"only")
    log.wal.tick(1.0)
    log.queue.finish()
    end = log.wal.end_lsn
    log.wal.tick(2.0)
    assert log.wal.end_lsn == end
    log.abandon()
    damage(file_of(tmp_path), position_of(lsn) + OVERHEAD_BYTES)
    with pytest.raises(LogCorrupt):
        Log(tmp_path)


# -- files


def fill(log: Log, count: int, group: int = 1) -> list[int]:
    """Appends records of 512 octets, one a flush."""
    return [log.put(bytes([number % 256]) * 512, group=group)[0] for number in range(count)]


def test_the_log_goes_on_in_further_files(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    lsns = fill(log, 50)
    assert number_of(lsns[-1]) > 5
    expected = [bytes([number]) * 512 for number in range(50)]
    assert [log.wal.read(lsn).payload for lsn in lsns] == expected
    log.close()
    assert opened(tmp_path, file_bytes=SMALL) == expected


@pytest.mark.parametrize("missing", [1, 3, "last"])
def test_a_missing_file_is_refused(tmp_path: Path, missing: int | str) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    lsns = fill(log, 50)
    number = number_of(lsns[-1]) if missing == "last" else int(missing)
    log.close()
    file_of(tmp_path, number).unlink()
    with pytest.raises(FileMissing, match=file_of(tmp_path, number).name):
        Log(tmp_path, file_bytes=SMALL)


def test_files_that_no_group_needs_are_used_again(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    log.put(b"kept", group=9)
    fill(log, 50)
    assert log.wal.oldest_number == 1
    kept = log.wal.append(9, 1, 0, 0, b"kept anew")
    log.wal.low_water(9, kept)
    log.wal.low_water(1, log.wal.end_lsn)
    assert log.wal.oldest_number == 1, "not before it is durable"
    log.put(b"more", group=9)
    log.wal.tick(1.0)
    log.queue.finish()
    assert log.wal.oldest_number == number_of(kept)
    # The present one, the next one, and one that is spare.
    assert len(list(tmp_path.glob("*.wal"))) <= 3
    fill(log, 50)
    log.close()
    found = opened(tmp_path, file_bytes=SMALL)
    assert b"kept" not in found
    at = found.index(b"kept anew")
    assert found[at + 1] == b"more"
    assert at < 7, "what was let go and lies in the same file comes, too"
    assert len(found) == at + 2 + 50


def test_a_log_that_goes_round_needs_no_space(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    for turn in range(60):
        log.wal.low_water(1, log.put(bytes([turn]) * 1000)[0])
        log.wal.tick(float(turn))
        log.queue.finish()
        if turn == 30:
            before = {file.stat().st_ino for file in tmp_path.glob("*.wal")}
    assert {file.stat().st_ino for file in tmp_path.glob("*.wal")} == before
    log.close()


def test_a_group_that_holds_old_files_is_asked_to_write_anew(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL, files_max=4)
    asked: list[int] = []

    def write_anew(group: int) -> None:
        asked.append(group)
        log.wal.low_water(group, log.wal.append(group, 2, 0, 0, b"all that matters"))

    log.wal.on_pressure = write_anew
    log.put(b"old", group=5)
    for _ in range(200):
        log.wal.low_water(1, fill(log, 1)[0])
        assert log.wal.file_count <= 7
    assert set(asked) == {5}
    assert len(asked) < 20
    log.close()
    assert b"all that matters" in opened(tmp_path, file_bytes=SMALL)


def test_a_record_that_fits_no_file_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    largest = SMALL - HEADER_BYTES - OVERHEAD_BYTES - MARK_BYTES
    with pytest.raises(RecordTooLarge):
        log.wal.append(1, 1, 0, 0, bytes(largest + 1))
    log.put(bytes(largest))
    log.put(bytes(largest))
    log.close()
    assert opened(tmp_path, file_bytes=SMALL) == [bytes(largest)] * 2


# -- whose it is


def test_the_log_of_another_container_is_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    with pytest.raises(ForeignFile, match=r"north.*south"):
        Log(tmp_path, container_id="south")


def test_another_version_is_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    damage(file_of(tmp_path), 9)
    with pytest.raises(UnsupportedVersion, match="version 17"):
        Log(tmp_path)


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    damage(file_of(tmp_path), 30)
    with pytest.raises(LogCorrupt, match="position 0"):
        Log(tmp_path)


def test_a_file_under_another_ones_name_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    fill(log, 50)
    log.close()
    file_of(tmp_path, 2).write_bytes(file_of(tmp_path, 3).read_bytes())
    with pytest.raises(LogCorrupt, match="number 3"):
        Log(tmp_path, file_bytes=SMALL)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    log = Log(tmp_path)
    probe = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from logs import Log; from pathlib import Path\n"
        "Log(Path(sys.argv[1]))"
    )
    tests = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path), tests],
        capture_output=True,
        check=False,
        text=True,
    )
    assert "LogLocked" in done.stderr
    assert "in use by process" in done.stderr
    log.close()
    Log(tmp_path).close()


def test_a_log_is_locked_within_a_process_too(tmp_path: Path) -> None:
    log = Log(tmp_path)
    with pytest.raises(LogLocked):
        Log(tmp_path)
    log.close()


# -- disks that fail


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

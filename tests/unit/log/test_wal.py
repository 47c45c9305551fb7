"""The write-ahead log: appends, recovery, files that come and go, and whose they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from logs import Log, opened
from wal_files import SMALL, damage, file_of, fill

from cogwork.log.errors import (
    FileMissing,
    ForeignFile,
    LogCorrupt,
    LogLocked,
    RecordTooLarge,
    UnsupportedVersion,
)
from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.mark import MARK_BYTES
from cogwork.log.position import number_of, position_of
from cogwork.log.record import OVERHEAD_BYTES, Record


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

        def put(log: Log, turn: int = turn) -> None:
            log.put(b"%d" % turn)

        found = opened(tmp_path, put)
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


def test_files_that_are_held_stay_as_they_are_until_they_are_let_go(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    log.put(b"copied")
    log.wal.held_number = log.wal.oldest_number
    first = tmp_path / "0000000001.wal"
    before = first.read_bytes()[:SMALL]
    for turn in range(60):
        log.wal.low_water(1, log.put(bytes([turn]) * 1000)[0])
        log.wal.tick(float(turn))
        log.queue.finish()
    copied = before.rstrip(b"\0")
    assert first.read_bytes()[: len(copied)] == copied
    assert len(list(tmp_path.glob("*.wal"))) > 3
    log.wal.held_number = None
    for turn in range(3):
        log.put(b"more")
        log.wal.tick(100.0 + turn)
        log.queue.finish()
    # The present one, the next one, and one that is spare.
    assert len(list(tmp_path.glob("*.wal"))) <= 3
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
        assert len(list(tmp_path.glob("*.wal"))) <= 7
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
    with pytest.raises(UnsupportedVersion, match="version 18"):
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


def test_a_log_that_was_let_go_up_to_a_new_file_is_read_after_a_crash(tmp_path: Path) -> None:
    log = Log(tmp_path, file_bytes=SMALL)
    while number_of(log.wal.end_lsn) < 2 or log.wal.room_bytes > 600:
        fill(log, 1)
    log.wal.low_water(1, log.wal.end_lsn)
    log.put(b"x" * 600, group=2)
    assert number_of(log.wal.end_lsn) == 3
    assert not file_of(tmp_path, 2).exists(), "what was durable last was in it"
    log.abandon()
    assert opened(tmp_path, file_bytes=SMALL) == [b"x" * 600]

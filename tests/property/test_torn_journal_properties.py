"""A replica whose write was torn begins with all that it acknowledged, and with nothing made up.

A write ends after any of its octets, or loses any sectors: the replica begins with exactly the
records before the first octet that is missing. Damage is another matter: of what a mark says was
durable, nothing is left out in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from killed_journals import KilledJournal
from mains import SECTOR_BYTES, Files, any_sectors

from cogwork.log.errors import LogError
from cogwork.log.file_header import HEADER_BYTES
from cogwork.log.file_name import file_number
from cogwork.log.mark import KIND_END, LOG_GROUP, Mark
from cogwork.log.position import lsn_of, number_of, position_of
from cogwork.log.record import Record, scan_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

SEEDS = 10
LIVES = 5
DAMAGES, DAMAGED_BYTES = 30, 40
NOWHERE_LSN = 1 << 64


def differences(data: bytes, written: bytes) -> list[int]:
    """Where octets are not as they were written, or missing."""
    if data == written:
        return []
    found = [at for at in range(len(data)) if data[at] != written[at]]
    return found or [len(data)]


def whole_lsn(files: Files, written: Files) -> int:
    """Up to where the files of a log are as they were written."""
    return min(
        (
            lsn_of(number, different[0])
            for name, data in written.items()
            if (number := file_number(name)) and (different := differences(files[name], data))
        ),
        default=NOWHERE_LSN,
    )


def count_up_to(journal: KilledJournal, lsn: int) -> int:
    return sum(record.end_lsn <= lsn for record in journal.records)


def torn(
    synced: Files, written: Files, places: Callable[[str, range], Iterable[int]]
) -> Iterator[Files]:
    """What may be left where all was written in order, up to some octet and no further."""
    left = dict(synced)
    for name in sorted(written):
        changed = differences(synced[name], written[name])
        if file_number(name) and changed:
            for at in places(name, range(changed[0], changed[-1] + 1)):
                yield {**left, name: written[name][:at] + synced[name][at:]}
        left[name] = written[name]


def check_torn(journal: KilledJournal, files: Files, written: Files) -> int:
    count = count_up_to(journal, whole_lsn(files, written))
    assert count >= journal.acknowledged
    journal.check(files, count)
    return count


def run(seed: int, path: Path, lives: int) -> Iterator[tuple[KilledJournal, Files, Files]]:
    """Have a journal live and be killed, and live on with what a power cut has left."""
    journal = KilledJournal(seed, path)
    for _ in range(lives):
        synced, written = journal.live()
        yield journal, synced, written
        left = any_sectors(synced, written, journal.chance)
        journal.go_on(left, check_torn(journal, left, written))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_write_that_ends_anywhere_is_a_prefix_with_all_that_was_acknowledged(
    seed: int, tmp_path: Path
) -> None:
    for journal, synced, written in run(seed, tmp_path, LIVES):
        ends = {(number_of(each.end_lsn), position_of(each.end_lsn)) for each in journal.records}

        def places(name: str, changed: range, ends: set[tuple[int, int]] = ends) -> set[int]:
            at_ends = {at for number, at in ends if number == file_number(name)}
            near = {at + by for at in at_ends for by in (-1, 0, 1)}
            return {at for at in changed if at in near or at % SECTOR_BYTES == 0}

        for files in torn(synced, written, places):
            check_torn(journal, files, written)
    assert journal.renewed


@pytest.mark.parametrize("seed", range(2))
def test_so_it_is_after_every_octet(seed: int, tmp_path: Path) -> None:
    for journal, synced, written in run(seed, tmp_path, 1):
        for files in torn(synced, written, lambda _, changed: changed):
            check_torn(journal, files, written)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_write_that_loses_any_sectors_is_a_prefix_with_all_that_was_acknowledged(
    seed: int, tmp_path: Path
) -> None:
    for journal, synced, written in run(seed, tmp_path, LIVES):
        for _ in range(10):
            check_torn(journal, any_sectors(synced, written, journal.chance), written)


def own_records(written: Files) -> list[Record]:
    """The marks of a log, the oldest first."""
    return [
        record
        for name in sorted(written)
        if (number := file_number(name))
        for record in scan_records(written[name], HEADER_BYTES, number)
        if record.group == LOG_GROUP
    ]


def damaged(journal: KilledJournal, written: Files) -> Iterator[tuple[Files, int]]:
    """Garble some octets of a log, in one place of many; say where the damage begins."""
    for name, data in written.items():
        number = file_number(name)
        if number:
            for _ in range(DAMAGES):
                start = journal.chance.randrange(HEADER_BYTES, len(data) - DAMAGED_BYTES)
                end = start + DAMAGED_BYTES
                block = bytes(each ^ journal.chance.randrange(1, 256) for each in data[start:end])
                yield {**written, name: data[:start] + block + data[end:]}, lsn_of(number, start)


def check_damaged(journal: KilledJournal, written: Files) -> Iterator[bool]:
    """Garble a log here and there; tell each time whether it was refused."""
    marks = own_records(written)
    last_lsns = {number_of(each.lsn): each.end_lsn for each in marks if each.kind == KIND_END}
    for files, start_lsn in damaged(journal, written):
        end_lsn = start_lsn + DAMAGED_BYTES
        whole = [each for each in marks if each.end_lsn <= start_lsn or end_lsn <= each.lsn]
        newest = Mark.of(whole[-1], whole[-1].payload) if whole else Mark(0, 1)
        assert newest is not None
        number = number_of(start_lsn)
        is_read = newest.oldest_number <= number and start_lsn < last_lsns.get(number, NOWHERE_LSN)
        up_to_lsn = start_lsn if is_read else NOWHERE_LSN
        try:
            journal.check(files, count_up_to(journal, up_to_lsn))
        except LogError:
            assert up_to_lsn < newest.durable_lsn or whole[-1:] != marks[-1:]
            for name, data in files.items():
                assert (journal.probe / name).read_bytes() == data, "it is left as it was"
            yield True
        else:
            assert up_to_lsn >= newest.durable_lsn
            yield False


def test_damage_below_a_mark_is_refused_and_else_cut_off(tmp_path: Path) -> None:
    refusals: set[bool] = set()
    for seed in range(SEEDS):
        print(f"seed {seed}")  # noqa: T201  # shown where it fails
        for journal, _, written in run(seed, tmp_path / str(seed), 1):
            refusals.update(check_damaged(journal, written))
    assert refusals == {True, False}

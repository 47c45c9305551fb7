"""Properties of the log's formats, and of a log after a power cut."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mains import Mains, any_sectors, put

from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import LogBusy, LogCorrupt, UnsupportedVersion
from cogwork.log.file_header import HEADER_BYTES, FileHeader
from cogwork.log.mark import MARK_BYTES, Mark, find_newest_mark
from cogwork.log.pins import Pins
from cogwork.log.position import lsn_of, number_of, position_of
from cogwork.log.record import (
    OVERHEAD_BYTES,
    Record,
    encode_record,
    read_record,
    record_bytes,
    scan_records,
)
from cogwork.log.wal import Wal

KEY = b"a secret"
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(1, 2**32 - 1)
CONTENTS = st.tuples(U32, st.integers(0, 255), U64, U64, st.binary(max_size=200))


def encoded(
    contents: list[tuple[int, int, int, int, bytes]], number: int, position: int
) -> tuple[bytes, list[Record]]:
    data, records = b"", []
    for each in contents:
        lsn = lsn_of(number, position + len(data))
        records.append(Record(lsn, *each))
        data += b"".join(encode_record(lsn, *each))
    return data, records


@given(NUMBERS, st.integers(0, 2**31))
def test_a_position_comes_back(number: int, position: int) -> None:
    lsn = lsn_of(number, position)
    assert (number_of(lsn), position_of(lsn)) == (number, position)
    assert lsn_of(number, position + 1) > lsn
    assert lsn_of(number + 1, 0) > lsn


@given(st.lists(CONTENTS, max_size=10), NUMBERS, st.integers(0, 300), st.binary(max_size=50))
def test_records_come_back(
    contents: list[tuple[int, int, int, int, bytes]], number: int, start: int, rest: bytes
) -> None:
    data, records = encoded(contents, number, start)
    found = list(scan_records(bytes(start) + data + rest, start, number))
    assert found[: len(records)] == records
    assert len(found) == len(records)
    for record in records:
        at = position_of(record.lsn)
        assert read_record(data, at, number, start) == record
        assert record_bytes(data[at - start :]) == OVERHEAD_BYTES + len(record.payload)


@given(CONTENTS, NUMBERS, st.data())
def test_a_record_that_is_changed_cut_or_elsewhere_is_none(
    contents: tuple[int, int, int, int, bytes], number: int, data: st.DataObject
) -> None:
    octets, _ = encoded([contents], number, 0)
    at = data.draw(st.integers(0, len(octets) - 1))
    bit = data.draw(st.integers(0, 7))
    changed = octets[:at] + bytes([octets[at] ^ 1 << bit]) + octets[at + 1 :]
    assert read_record(changed, 0, number) is None
    assert read_record(octets[:at], 0, number) is None
    assert read_record(b"x" + octets, 1, number) is None
    assert read_record(octets, 0, number % (2**32 - 1) + 1) is None


@given(U64, U32, st.binary(max_size=100), st.binary(max_size=100))
def test_the_last_whole_mark_is_found(
    durable: int, oldest: int, before: bytes, behind: bytes
) -> None:
    mark = Mark(durable, oldest)
    octets = b"".join(mark.encode(lsn_of(3, len(before)), 1, KEY))
    assert len(octets) == MARK_BYTES
    assert find_newest_mark(before + octets + behind, 3, KEY) == mark
    assert find_newest_mark(before + octets + behind + octets, 3, KEY) == mark
    assert find_newest_mark(before + octets[:-1], 3, KEY) is None


@given(st.text(min_size=1, max_size=16), NUMBERS, st.data())
def test_a_header_comes_back_and_damage_is_seen(
    container_id: str, number: int, data: st.DataObject
) -> None:
    octets = FileHeader(container_id, number).encode()
    assert len(octets) == HEADER_BYTES
    header = FileHeader.decode(octets, "file")
    assert (header.container_id, header.number) == (container_id, number)
    at = data.draw(st.integers(0, HEADER_BYTES - 1))
    changed = octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1 :]
    with pytest.raises((LogCorrupt, UnsupportedVersion)):
        FileHeader.decode(changed, "file")


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.integers(0, 60)), max_size=60))
def test_pins_are_what_a_plain_list_says(steps: list[tuple[int, bool, int]]) -> None:
    pins = Pins()
    kept: dict[int, list[int]] = {}
    for at, (group, is_append, back) in enumerate(steps):
        lsn = lsn_of(1 + at // 5, at)
        if is_append:
            pins.note(group, lsn)
            kept.setdefault(group, []).append(lsn)
        elif kept.get(group):
            low = lsn_of(1 + max(at - back, 0) // 5, max(at - back, 0))
            pins.release(group, low)
            if low > kept[group][-1]:
                del kept[group]
            elif low > kept[group][0]:
                kept[group] = [low, *(each for each in kept[group] if each > low)]
        oldest = min((number_of(lsns[0]) for lsns in kept.values()), default=99)
        assert pins.oldest_number(99) == oldest
        assert sorted(pins.groups_at(oldest)) == sorted(
            group for group, lsns in kept.items() if number_of(lsns[0]) == oldest
        )


class Story:
    """One log through several power cuts, and what has to be in it.

    Attributes:
        appended: The payload of every record, by index.
        durable: So many of them are.
        kept: The first one that is needed, for certain.
    """

    def __init__(self, chance: random.Random, path: Path) -> None:
        self.chance = chance
        self.source, self.target = path / "0", path / "1"
        self.appended: list[bytes] = []
        self.durable = self.kept = 0

    def live(self) -> None:
        mains = Mains()
        queue = DiskQueue(mains)
        wal = Wal(Directory(self.source), queue, "north", file_bytes=4096)
        self.compare([(record.index, record.payload) for record in wal.recover()])
        mains.trust(self.source)
        self.work(wal, queue)
        put(self.target, any_sectors(*mains.halt(self.source), self.chance))
        self.source, self.target = self.target, self.source
        mains.waiting = []
        queue._waiting.clear()
        wal._is_open = False
        wal.close()
        mains.close()

    def compare(self, found: list[tuple[int, bytes]]) -> None:
        """All that was durable and is needed is there, and nothing that was not appended."""
        first = found[0][0] if found else self.kept
        last = found[-1][0] + 1 if found else self.kept
        assert found == list(enumerate(self.appended))[first:last]
        assert first <= self.kept
        assert last >= self.durable
        del self.appended[last:]
        self.durable = last

    def work(self, wal: Wal, queue: DiskQueue) -> None:
        lsns: dict[int, int] = {}
        promises: list[tuple[int, int]] = []
        for now in range(self.chance.randrange(1, 40)):
            for _ in range(self.chance.randrange(4)):
                payload = bytes([self.chance.randrange(256)]) * self.chance.randrange(700)
                with suppress(LogBusy):
                    lsns[len(self.appended)] = wal.append(1, 1, len(self.appended), 0, payload)
                    self.appended.append(payload)
            if lsns and self.chance.random() < 0.2:
                index = self.chance.choice(list(lsns)[-5:])
                wal.low_water(1, lsns[index])
                promises.append((len(self.appended), index))
            wal.tick(float(now)) if self.chance.random() < 0.5 else wal.flush()
            if self.chance.random() < 0.6:
                queue.dispatch()
            done = (index + 1 for index, lsn in lsns.items() if lsn < wal.durable_lsn)
            self.durable = max(done, default=self.durable)
            kept = (index for needed, index in promises if needed <= self.durable)
            self.kept = max(self.kept, *kept, 0)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_a_power_cut_loses_nothing_durable_and_refuses_nothing(seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        story = Story(random.Random(seed), Path(name))
        for _ in range(4):
            story.live()

"""Segments: sealed, read, found by time, given up; whole or not there at all."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from logs import FaultyDisk

from cogwork.log.block import Block
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue, Operation
from cogwork.log.errors import (
    FileMissing,
    ForeignFile,
    LogCorrupt,
    LogError,
    OffsetGone,
    UnsupportedVersion,
)
from cogwork.log.segment import segment_name
from cogwork.log.segment_header import SEGMENT_HEADER_BYTES
from cogwork.log.segment_index import INDEX_SPACING_BYTES
from cogwork.log.segment_store import SegmentStore

if TYPE_CHECKING:
    from collections.abc import Generator

    from cogwork.log.segment import Segment


def blocks(first: int, count: int, size_bytes: int = 1000, records: int = 10) -> list[Block]:
    """Make blocks of one time for each two."""
    return [
        Block(
            first + number * records,
            records,
            1_000_000 + (first // records + number) // 2,
            bytes([(first // records + number) % 256]) * size_bytes,
        )
        for number in range(count)
    ]


class Store:
    def __init__(self, path: Path, stream_id: bytes = bytes(16)) -> None:
        self.disk = FaultyDisk()
        self.queue = DiskQueue(self.disk)
        self.directory = Directory(path)
        self.errors: list[Exception] = []
        self.done: list[Segment] = []
        try:
            self.segments = SegmentStore(self.directory, self.queue, stream_id)
        except BaseException:
            self.close()
            raise

    def seal(self, *each: list[Block]) -> None:
        for listed in each:
            self.segments.seal(listed, self.done.append, self.errors.append)
            self.queue.finish()

    def read_all(self, max_bytes: int = 1 << 20) -> list[Block]:
        found: list[Block] = []
        offset = self.segments.first_offset or 0
        while part := self.segments.read(offset, max_bytes):
            found += part
            offset = part[-1].next_offset
        return found

    def close(self) -> None:
        self.queue.close()
        self.directory.close()


THREE = [blocks(0, 100), blocks(1000, 1), blocks(1010, 300)]
ALL = [block for each in THREE for block in each]


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store, None, None]:
    made = Store(tmp_path / "stream")
    yield made
    made.close()


def file_of(store: Store, first: int) -> Path:
    return Path(store.directory.path) / segment_name(first)


def damage(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 0x10
    file.write_bytes(data)


@pytest.mark.parametrize("max_bytes", [1, 1028, 5000, 1 << 20])
def test_what_was_sealed_is_read(store: Store, max_bytes: int) -> None:
    store.seal(*THREE)
    assert store.errors == []
    assert len(store.done) == 3
    assert (store.segments.first_offset, store.segments.next_offset) == (0, 4010)
    assert store.read_all(max_bytes) == ALL


def test_an_empty_store_has_nothing(store: Store) -> None:
    assert store.segments.first_offset is None
    assert store.segments.read(0) == []
    assert store.segments.offset_at(0) is None
    assert store.segments.retain(max_bytes=0) is None
    store.segments.verify()


def test_it_is_there_after_a_restart(store: Store) -> None:
    store.seal(*THREE)
    again = Store(Path(store.directory.path))
    assert again.read_all() == ALL
    assert again.segments.size_bytes == store.segments.size_bytes
    again.seal(blocks(4010, 2))
    assert again.read_all() == ALL + blocks(4010, 2)
    again.close()


def test_reading_begins_with_the_block_that_holds_the_offset(store: Store) -> None:
    store.seal(*THREE)
    for offset in (0, 9, 10, 999, 1000, 1009, 1010, 2345, 4009):
        first = store.segments.read(offset, 1)[0]
        assert first.offset <= offset < first.next_offset
    assert store.segments.read(4010) == []
    assert store.segments.read(9999) == []


def test_readers_side_by_side_do_not_disturb_each_other(store: Store) -> None:
    store.seal(*THREE)
    readers = [0] * 100
    found: list[list[Block]] = [[] for _ in readers]
    for turn in range(60):
        for number, offset in enumerate(readers):
            part = store.segments.read(offset, 1000 * (1 + (number + turn) % 17))
            found[number] += part
            readers[number] = part[-1].next_offset if part else offset
    assert all(each == ALL for each in found)


def test_times_are_found(store: Store) -> None:
    store.seal(*THREE)
    for time_ms in (0, 1_000_000, 1_000_001, 1_000_049, 1_000_050, 1_000_051, 1_000_200):
        expected = next(block.offset for block in ALL if block.time_ms >= time_ms)
        assert store.segments.offset_at(time_ms) == expected
    assert store.segments.offset_at(ALL[-1].time_ms + 1) is None


def test_blocks_larger_than_the_index_is_dense_are_read(store: Store) -> None:
    large = blocks(0, 5, size_bytes=3 * INDEX_SPACING_BYTES)
    store.seal(large)
    assert store.read_all(10) == large
    assert store.segments.read(42, 1) == [large[4]]
    assert store.segments.offset_at(large[4].time_ms) == 40
    store.segments.verify()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        blocks(20, 3),
        blocks(10, 1) + blocks(30, 1),
        [Block(10, 1, 5, b""), Block(11, 1, 4, b"")],
        [Block(10, 0, 5, b"")],
    ],
    ids=["nothing", "a gap before", "a gap between", "back in time", "no records"],
)
def test_what_does_not_follow_is_not_sealed(store: Store, wrong: list[Block]) -> None:
    store.seal(blocks(0, 1), wrong)
    assert [type(error) for error in store.errors] == [ValueError]
    store.seal(blocks(10, 1))
    assert store.read_all() == blocks(0, 2)


# -- damage


def test_every_octet_of_a_segment_is_checked(tmp_path: Path) -> None:
    store = Store(tmp_path / "a")
    store.seal(blocks(0, 3, size_bytes=20))
    file = file_of(store, 0)
    whole = file.read_bytes()
    for position in range(len(whole)):
        damage(file, position)
        with pytest.raises(LogError) as caught:
            Store(tmp_path / "a").segments.verify()
        assert str(file) in str(caught.value)
        file.write_bytes(whole)
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(LogError):
            Store(tmp_path / "a")
    store.close()


def test_a_damaged_block_is_refused_with_its_place_and_others_are_read(store: Store) -> None:
    store.seal(blocks(0, 5))
    position = SEGMENT_HEADER_BYTES + 2 * blocks(0, 1)[0].size_bytes
    damage(file_of(store, 0), position + 100)
    assert store.segments.read(0, 1 << 20) == blocks(0, 5)[:2]
    with pytest.raises(LogCorrupt) as caught:
        store.segments.read(20)
    assert (caught.value.file, caught.value.position) == (str(file_of(store, 0)), position)


def test_a_missing_segment_is_refused(store: Store) -> None:
    store.seal(*THREE)
    file_of(store, 1000).unlink()
    with pytest.raises(FileMissing, match=segment_name(1000)):
        store.segments.read(1000)
    with pytest.raises(FileMissing, match=segment_name(1000)):
        Store(Path(store.directory.path))


def test_segments_that_overlap_or_have_other_names_are_refused(store: Store) -> None:
    store.seal(*THREE)
    copy = file_of(store, 1005)
    shutil.copy(file_of(store, 1000), copy)
    with pytest.raises(LogCorrupt, match="begins at offset 1000"):
        Store(Path(store.directory.path))
    copy.unlink()
    other = Store(Path(store.directory.path).with_name("other"))
    other.seal(blocks(1000, 2))
    shutil.copy(file_of(other, 1000), file_of(store, 1000))
    with pytest.raises(LogCorrupt, match="goes up to offset 1020"):
        Store(Path(store.directory.path))
    other.close()


def test_segments_of_another_stream_or_version_are_refused(store: Store) -> None:
    store.seal(blocks(0, 1))
    with pytest.raises(ForeignFile):
        Store(Path(store.directory.path), b"another stream!!")
    damage(file_of(store, 0), 9)
    with pytest.raises(UnsupportedVersion):
        Store(Path(store.directory.path))


# -- sealing, interrupted


def steps_of(steps: Generator[Operation, None, object], queue: DiskQueue, count: int) -> bool:
    """Do some of the steps and stop, as if the process had; return whether all are done."""

    def some() -> Generator[Operation, None, bool]:
        for number, operation in enumerate(steps):
            if number == count:
                return False
            yield operation
        return True

    done = queue.run(some())
    steps.close()
    return done


def test_a_crash_at_any_step_of_sealing_leaves_a_usable_store(tmp_path: Path) -> None:
    for count in range(20):
        store = Store(tmp_path / str(count))
        store.seal(blocks(0, 10))
        late = blocks(100, 300)
        is_done = steps_of(store.segments.sealing(late), store.queue, count)
        store.close()
        again = Store(tmp_path / str(count))
        assert again.segments.next_offset in (100, 3100)
        assert is_done <= (again.segments.next_offset == 3100)
        again.segments.verify()
        if again.segments.next_offset == 100:
            again.seal(late)
        assert again.read_all() == blocks(0, 10) + late
        assert list(Path(again.directory.path).glob("*.tmp")) == []
        again.close()
        if is_done:
            assert count > 4
            return
    pytest.fail("sealing never ends")


@pytest.mark.parametrize("fault", ["write", "sync"])
def test_sealing_that_fails_leaves_nothing_and_can_be_done_again(store: Store, fault: str) -> None:
    store.seal(blocks(0, 10))
    if fault == "write":
        store.disk.write_errors = [0, errno.ENOSPC]
    else:
        store.disk.sync_error = errno.EIO
    late = blocks(100, 3000)
    store.seal(late)
    assert [type(error).__mro__[1] for error in store.errors] == [OSError]
    assert [file.name for file in Path(store.directory.path).iterdir()] == [segment_name(0)]
    store.disk.sync_error = 0
    store.seal(late)
    assert store.read_all() == blocks(0, 10) + late


# -- retention


def test_retention_gives_up_whole_segments(store: Store) -> None:
    store.seal(*THREE)
    retain = store.segments.retain
    assert retain(before_offset=999) == 0
    assert retain(before_offset=1000) == 1000
    with pytest.raises(OffsetGone) as caught:
        store.segments.read(999)
    assert caught.value.first == 1000
    assert retain(before_time_ms=THREE[1][-1].time_ms) == 1000
    assert retain(before_time_ms=THREE[1][-1].time_ms + 1) == 1010
    assert retain(max_bytes=store.segments.size_bytes) == 1010
    assert store.read_all() == THREE[2]
    assert retain(max_bytes=100) == 4010
    assert store.segments.size_bytes == 0
    assert list(Path(store.directory.path).iterdir()) == []
    store.seal(blocks(4010, 2))
    assert store.read_all() == blocks(4010, 2)


def test_a_reader_whose_segment_goes_is_told_where_to_go_on(store: Store) -> None:
    store.seal(*THREE)
    segment = store.segments.segments[0]
    read = segment.read

    class Late:
        """Retention comes between finding the segment and reading it."""

        def __getattr__(self, name: str) -> object:
            return getattr(segment, name)

        def read(self, offset: int, max_bytes: int) -> list[Block]:
            store.segments.retain(before_offset=1000)
            return read(offset, max_bytes)

    store.segments.segments[0] = Late()  # type: ignore[call-overload]  # a fake
    with pytest.raises(OffsetGone) as caught:
        store.segments.read(500)
    assert caught.value.first == 1000


def test_clearing_begins_anew_elsewhere(store: Store) -> None:
    store.seal(*THREE)
    store.segments.clear(90_000)
    assert (store.segments.first_offset, store.segments.next_offset) == (90_000, 90_000)
    store.seal(blocks(90_000, 3))
    assert store.read_all() == blocks(90_000, 3)


def test_what_was_cleared_has_gone_for_good_before_anything_is_named(store: Store) -> None:
    store.seal(*THREE)
    store.segments.clear(90_000)
    steps = store.segments.sealing(blocks(90_000, 1))
    synced: list[list[str]] = []
    for step in steps:
        if step == Operation.sync_of(store.directory.fd):
            synced.append(store.directory.names())
        if step.data:
            data = step.data if isinstance(step.data, bytes) else b"".join(step.data)
            os.pwrite(step.fd, data, step.offset)
    assert synced == [["segment.tmp"], [segment_name(90_000)]]


def test_one_segment_is_made_at_a_time(store: Store) -> None:
    seal = store.segments.seal
    seal(blocks(0, 2000), store.done.append, store.errors.append)
    seal(blocks(0, 10), store.done.append, store.errors.append)
    store.queue.finish()
    assert [type(error) for error in store.errors] == [ValueError]
    assert store.read_all() == blocks(0, 2000)


@pytest.mark.parametrize("turns", range(6))
def test_what_is_sealed_while_all_is_cleared_is_gone(store: Store, turns: int) -> None:
    store.segments.seal(blocks(0, 10), store.done.append, store.errors.append)
    for _ in range(turns):
        if not store.queue.is_idle:
            store.queue.wait()
    store.segments.clear(500)
    store.queue.finish()
    assert store.segments.next_offset == 500
    assert store.segments.segments == []
    assert list(Path(store.directory.path).iterdir()) == []
    assert len(store.done) + len(store.errors) == 1
    store.seal(blocks(500, 2))
    assert store.read_all() == blocks(500, 2)


def test_the_index_of_few_segments_is_in_memory(store: Store) -> None:
    store.seal(*(blocks(number * 10, 1) for number in range(20)))
    for number in range(20):
        store.segments.read(number * 10)
    loaded = [each for each in store.segments.segments if each._index is not None]
    assert 1 <= len(loaded) <= 4


# -- what the disk refuses


def test_a_segment_that_cannot_be_looked_at_is_not_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.seal(THREE[0])
    with monkeypatch.context() as patched:
        error = OSError(errno.EMFILE, "no descriptor is left")
        patched.setattr(store.directory, "read", Mock(side_effect=error))
        store.seal(THREE[1])
    assert store.errors == [error]
    assert not file_of(store, 1000).exists()
    store.segments.clear(4010)
    store.seal(blocks(4010, 1))
    again = SegmentStore(store.directory, store.queue)
    assert (again.first_offset, again.next_offset) == (4010, 4020)


def test_what_cannot_be_removed_is_still_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.seal(*THREE)
    remove = store.directory.remove
    error = OSError(errno.EIO, "the disk is broken")

    def fail_at_second(name: str) -> None:
        if name == segment_name(1000):
            raise error
        remove(name)

    monkeypatch.setattr(store.directory, "remove", fail_at_second)
    with pytest.raises(OSError, match="broken"):
        store.segments.retain(before_offset=4010)
    assert store.segments.first_offset == 1000
    assert store.segments.size_bytes == sum(each.size_bytes for each in store.segments.segments)
    monkeypatch.undo()
    assert store.segments.retain(before_offset=4010) == 4010
    assert store.segments.size_bytes == 0

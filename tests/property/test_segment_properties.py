"""Properties of segments, and of whatever may be found in place of a log's files."""

from __future__ import annotations

import random
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import Log

from cogwork.dataplane.disk import Disk
from cogwork.log.block import BLOCK_OVERHEAD_BYTES, Block, block_bytes, encode_block, read_block
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.errors import LogCorrupt, LogError
from cogwork.log.segment_footer import SegmentFooter
from cogwork.log.segment_index import INDEX_SPACING_BYTES, SegmentIndex
from cogwork.log.segment_store import SegmentStore

if TYPE_CHECKING:
    from pathlib import Path

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
BLOCKS = st.builds(Block, U64, U32, I64, st.binary(max_size=200))


@given(BLOCKS, st.binary(max_size=50), st.binary(max_size=50), st.data())
def test_a_block_comes_back_and_damage_is_seen(
    block: Block, before: bytes, behind: bytes, data: st.DataObject
) -> None:
    octets = b"".join(encode_block(block))
    assert len(octets) == block.size_bytes == BLOCK_OVERHEAD_BYTES + len(block.data)
    assert read_block(before + octets + behind, len(before)) == block
    assert block_bytes(before + octets, len(before)) == len(octets)
    at = data.draw(st.integers(0, len(octets) - 1))
    assert read_block(octets[:at], 0) is None
    changed = octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1 :]
    assert read_block(changed, 0) is None


@given(st.builds(SegmentFooter, U64, U32, U32, U32, U64, U64, I64, I64), st.data())
def test_a_footer_comes_back_and_damage_is_seen(footer: SegmentFooter, data: st.DataObject) -> None:
    octets = footer.encode()
    assert SegmentFooter.decode(octets, "file", 0) == footer
    at = data.draw(st.integers(0, len(octets) - 1))
    for changed in (octets[:at], octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1 :]):
        with pytest.raises(LogCorrupt):
            SegmentFooter.decode(changed, "file", 0)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 3), st.integers(28, 200_000))))
def test_an_index_leads_to_a_place_not_behind_what_is_sought(
    sizes: list[tuple[int, int, int]],
) -> None:
    index = SegmentIndex()
    found: list[tuple[int, int, int, int]] = []
    offset = time_ms = position = 0
    for count, later_ms, size in [(1, 0, 28), *sizes]:
        time_ms += later_ms
        index.note(offset, time_ms, position)
        found.append((offset, count, time_ms, position))
        offset, position = offset + count, position + size
    decoded = SegmentIndex.decode(index.encode())
    for first, count, time_ms, position in found:
        start = decoded.position_of(first + count - 1)
        assert start <= position < start + INDEX_SPACING_BYTES + 200_000
        earliest = next(each[3] for each in found if each[2] >= time_ms)
        assert decoded.position_before(time_ms) <= earliest


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=30), max_size=4), st.data())
def test_a_store_is_what_was_sealed(sizes: list[list[int]], data: st.DataObject) -> None:
    queue = DiskQueue(Disk())
    with tempfile.TemporaryDirectory() as name, Directory(name) as directory:
        store = SegmentStore(directory, queue)
        sealed: list[Block] = []
        for each in sizes:
            blocks = []
            for size in each:
                first = sealed[-1].next_offset if sealed else 17
                time_ms = (sealed[-1].time_ms if sealed else 0) + size % 3
                blocks.append(Block(first, 1 + size % 7, time_ms, bytes(size)))
                sealed.append(blocks[-1])
            queue.run(store.sealing(blocks))
        again = SegmentStore(directory, queue)
        for offset in range(17, sealed[-1].next_offset if sealed else 17):
            block = again.read(offset, data.draw(st.integers(1, 10_000)))[0]
            assert block == next(each for each in sealed if each.next_offset > offset)
        for time_ms in range((sealed[-1].time_ms if sealed else 0) + 2):
            later = (each.offset for each in sealed if each.time_ms >= time_ms)
            assert again.offset_at(time_ms) == next(later, None)
        again.verify()
    queue.close()


def spoiled(chance: random.Random, octets: bytes) -> bytes:
    """Change, cuts or extends octets, anywhere."""
    changed = bytearray(octets)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(4):
            case 0:
                del changed[at:]
            case 1:
                changed[at : at + 8] = chance.randbytes(8)
            case 2:
                changed[at:at] = chance.randbytes(chance.randrange(100))
            case _:
                end = at + chance.randrange(2000)
                changed[at:end] = bytes(len(changed[at:end]))
    return bytes(changed)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    path = tmp_path_factory.mktemp("sound") / "log"
    log = Log(path, file_bytes=4096)
    payloads = [bytes([number]) * (number * 37 % 800) for number in range(40)]
    for payload in payloads:
        log.put(payload)
    log.close()
    return path, payloads


def test_whatever_is_in_the_files_is_read_or_refused(
    sound: tuple[Path, list[bytes]], tmp_path: Path
) -> None:
    path, payloads = sound
    files = {file.name: file.read_bytes() for file in path.glob("*.wal")}
    for seed in range(300):
        chance = random.Random(seed)
        target = tmp_path / str(seed)
        target.mkdir()
        victim = chance.choice(list(files))
        for name, octets in files.items():
            (target / name).write_bytes(spoiled(chance, octets) if name == victim else octets)
        try:
            log = Log(target, file_bytes=4096)
        except LogError:
            continue
        found = log.payloads()
        # Only with the newest marks it may be forgotten that something was durable.
        least = 0 if victim in sorted(files)[-2:] else len(payloads)
        assert found == payloads[: max(len(found), least)]
        log.put(b"and goes on")
        log.close()
        again = Log(target, file_bytes=4096)
        assert again.payloads() == [*found, b"and goes on"]
        again.close()

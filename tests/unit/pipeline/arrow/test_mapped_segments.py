"""Sealed segments, as a reader maps them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

from cogwork.log.block import Block
from cogwork.log.errors import LogCorrupt
from cogwork.log.segment import segment_name
from cogwork.log.segment_builder import build_segment
from cogwork.pipeline.arrow.batches import columns_from
from cogwork.pipeline.arrow.serving.segments import Segments
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.chunks import encode_chunk

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("offset", "body")
CHUNK = 300


def write(folder: Path, first: int, count: int) -> Path:
    """Write a segment of chunks of some records."""
    blocks = []
    for offset in range(first, first + count, CHUNK):
        records = [b"\x00\x53\x75\xa0\x06%06d" % (offset + at) for at in range(CHUNK)]
        chunk = Chunk(offset, 1, 1000 + offset, Batch.of(records))
        blocks.append(Block(offset, CHUNK, 1000 + offset, encode_chunk(chunk)))
    path = folder / segment_name(first)
    pieces = build_segment(bytes(16), blocks)
    path.write_bytes(b"".join(chain.from_iterable(pieces)))
    return path


def bodies(segments: Segments, start: int, end: int) -> list[bytes]:
    """Read a range, as a reader does."""
    found: list[bytes] = []
    while start < end:
        columns = columns_from(NAMES, start, end)
        while not columns.is_full:
            assert segments.fill(columns)
        assert columns.body is not None
        found.append(bytes(columns.body.data))
        start = columns.next
    return found


def test_a_range_goes_over_blocks_and_segments(tmp_path: Path) -> None:
    write(tmp_path, 0, 9000)
    write(tmp_path, 9000, 3000)
    found = bodies(Segments(str(tmp_path)), 17, 11_998)
    assert b"".join(found) == b"".join(b"%06d" % offset for offset in range(17, 11_998))


def test_a_segment_that_is_sealed_meanwhile_is_found(tmp_path: Path) -> None:
    write(tmp_path, 0, 600)
    segments = Segments(str(tmp_path))
    assert not segments.fill(columns_from(NAMES, 600, 700))
    write(tmp_path, 600, 600)
    assert bodies(segments, 600, 700)[0][:6] == b"000600"


def test_a_segment_that_has_gone_is_none(tmp_path: Path) -> None:
    path = write(tmp_path, 0, 600)
    write(tmp_path, 600, 600)
    segments = Segments(str(tmp_path))
    bodies(segments, 700, 710)
    path.unlink()
    assert not segments.fill(columns_from(NAMES, 10, 20))
    assert bodies(segments, 700, 710)


def test_a_directory_that_has_gone_has_none(tmp_path: Path) -> None:
    assert not Segments(str(tmp_path / "gone")).fill(columns_from(NAMES, 0, 1))


def test_damage_is_found(tmp_path: Path) -> None:
    path = write(tmp_path, 0, 600)
    whole = bytearray(path.read_bytes())
    whole[400] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="checksum"):
        bodies(Segments(str(tmp_path)), 0, 600)
    whole[-1] ^= 1
    path.write_bytes(whole)
    with pytest.raises(LogCorrupt):
        bodies(Segments(str(tmp_path)), 0, 600)

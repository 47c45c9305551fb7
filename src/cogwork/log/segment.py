"""A sealed segment: a file that never changes, read from any place.

Theory of operation. The file is opened for each read, so that no number of streams and readers
holds descriptors, and a segment that retention removes meanwhile does no harm. The index is loaded
when it is first needed. Whoever reads on finds the place where the last read ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google_crc32c import value

from cogwork.log.block import BLOCK_OVERHEAD_BYTES, Block, block_bytes, read_block
from cogwork.log.errors import FileMissing, LogCorrupt
from cogwork.log.segment_footer import SEGMENT_FOOTER_BYTES, SegmentFooter
from cogwork.log.segment_header import SEGMENT_HEADER_BYTES, SegmentHeader
from cogwork.log.segment_index import INDEX_ENTRY_BYTES, INDEX_SPACING_BYTES, SegmentIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.log.directory import Directory

__all__ = ("SUFFIX", "Segment", "segment_name")

SUFFIX = ".seg"

ENDS_MAX = 64
"""So many readers find the place where they ended."""


def segment_name(first_offset: int) -> str:
    """Return the name of the segment that begins at an offset."""
    return f"{first_offset:020d}{SUFFIX}"


class Segment:
    """Blocks of a stream, in a file.

    Attributes:
        name: Of the file.
        header: The file's first octets.
        footer: Its last ones.
        size_bytes: Of the file.
    """

    def __init__(self, directory: Directory, name: str) -> None:
        """Open a segment, and look at both its ends.

        Args:
            directory: Where it is.
            name: Of the file.

        Raises:
            LogCorrupt: One of the ends is damaged.
            UnsupportedVersion: It has another version.
        """
        self.name = name
        self._directory = directory
        self._file = directory.path_of(name)
        self.size_bytes = directory.size_of(name)
        position = max(self.size_bytes - SEGMENT_FOOTER_BYTES, 0)
        self.header = SegmentHeader.decode(
            directory.read(name, 0, SEGMENT_HEADER_BYTES), self._file
        )
        end = directory.read(name, position, SEGMENT_FOOTER_BYTES)
        self.footer = SegmentFooter.decode(end, self._file, position)
        index_end = self.footer.index_position + self.footer.index_count * INDEX_ENTRY_BYTES
        if index_end != position or self.footer.first_offset != self.header.first_offset:
            raise LogCorrupt(self._file, position, "the footer does not fit the file")
        self._index: SegmentIndex | None = None
        self._ends: dict[int, int] = {}

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.footer.first_offset

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return self.footer.next_offset

    def check_place(self, stream_id: bytes, next_offset: int | None) -> None:
        """Make sure that it is where it belongs.

        Args:
            stream_id: Whose segments these are.
            next_offset: Where the one before it ends; None where it is the first one.

        Raises:
            ForeignFile: It is another stream's.
            LogCorrupt: It has another one's name, or holds what the one before it does.
            FileMissing: There is a gap before it.
        """
        self.header.check(stream_id, self._file)
        if self.name != segment_name(self.first_offset):
            raise LogCorrupt(self._file, 0, f"it begins at offset {self.first_offset}")
        if next_offset is not None and self.first_offset < next_offset:
            raise LogCorrupt(self._file, 0, f"the one before it goes up to offset {next_offset}")
        if next_offset is not None and self.first_offset > next_offset:
            raise FileMissing(self._directory.path_of(segment_name(next_offset)))

    def load_index(self) -> SegmentIndex:
        """Return the index.

        Raises:
            LogCorrupt: It is damaged.
        """
        if self._index is None:
            footer = self.footer
            size_bytes = footer.index_count * INDEX_ENTRY_BYTES
            data = self._directory.read(self.name, footer.index_position, size_bytes)
            if not data or value(data) != footer.index_checksum:
                raise LogCorrupt(self._file, footer.index_position, "the index is damaged")
            self._index = SegmentIndex.decode(data)
        return self._index

    def forget_index(self) -> None:
        """Give the index's memory back."""
        self._index = None
        self._ends.clear()

    def read(self, offset: int, max_bytes: int) -> list[Block]:
        """Read blocks, the first of which holds `offset`.

        Args:
            offset: One of the segment.
            max_bytes: About how much, but at least one block.

        Raises:
            LogCorrupt: A block is damaged.
            FileNotFoundError: Retention has removed the segment.
        """
        position = self._ends.pop(offset, None)
        if position is None:
            start = self.load_index().position_of(offset)
            position = self._seek(start, lambda block: block.next_offset > offset)
        blocks, end = self._read_from(position, max_bytes)
        if not blocks[0].offset <= offset < blocks[0].next_offset:
            raise LogCorrupt(self._file, position, "a block is not where the index says")
        if len(self._ends) >= ENDS_MAX:
            del self._ends[next(iter(self._ends))]
        self._ends[blocks[-1].next_offset] = end
        return blocks

    def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record of a time or later, which there is.

        Raises:
            LogCorrupt: A block on the way is damaged.
        """
        start = self.load_index().position_before(time_ms)
        position = self._seek(start, lambda block: block.time_ms >= time_ms)
        return self._read_from(position, 1)[0][0].offset

    def verify(self) -> Iterator[int]:
        """Read and check everything; yield, now and then, how many octets were read.

        Raises:
            LogCorrupt: Something is damaged.
        """
        index = SegmentIndex()
        position, offset, count = SEGMENT_HEADER_BYTES, self.first_offset, 0
        time_ms = self.footer.first_time_ms
        while position < self.footer.index_position:
            blocks, end = self._read_from(position, INDEX_SPACING_BYTES)
            for block in blocks:
                if block.offset != offset or block.time_ms < time_ms:
                    raise LogCorrupt(self._file, position, "a block does not follow the last one")
                index.note(block.offset, block.time_ms, position)
                position += block.size_bytes
                offset, time_ms = block.next_offset, block.time_ms
            count += len(blocks)
            assert position == end
            yield position
        footer = self.footer
        found = (offset, time_ms, count)
        if found != (footer.next_offset, footer.last_time_ms, footer.block_count):
            raise LogCorrupt(self._file, position, "the footer does not fit the blocks")
        if index.encode() != self.load_index().encode():
            raise LogCorrupt(self._file, position, "the index does not fit the blocks")

    def _read_from(self, position: int, max_bytes: int) -> tuple[list[Block], int]:
        """Read blocks from a position on, up to a damaged one; return them and where they end."""
        end = self.footer.index_position
        size_bytes = max(max_bytes, BLOCK_OVERHEAD_BYTES)
        data = self._directory.read(self.name, position, min(size_bytes, end - position))
        size_bytes = block_bytes(data, 0)
        if size_bytes > len(data):
            data = self._directory.read(self.name, position, min(size_bytes, end - position))
        blocks: list[Block] = []
        at = 0
        while (block := read_block(data, at)) is not None:
            blocks.append(block)
            at += block.size_bytes
        if not blocks:
            raise LogCorrupt(self._file, position, "a block cannot be read")
        return blocks, position + at

    def _seek(self, position: int, is_reached: Callable[[Block], bool]) -> int:
        """Find the first block from a position on that is meant."""
        while position < self.footer.index_position:
            for block in self._read_from(position, INDEX_SPACING_BYTES)[0]:
                if is_reached(block):
                    return position
                position += block.size_bytes
        raise LogCorrupt(self._file, position, "a block is not where the index says")

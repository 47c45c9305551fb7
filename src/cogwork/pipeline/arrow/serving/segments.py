"""The sealed segments of one stream, mapped into a reader's memory.

Theory of operation. A segment never changes, and one that retention removes stays readable for as
long as it is mapped. So a reader needs nobody's leave to read one. Each block's checksum is looked
at as it is read.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING

from google_crc32c import value

from cogwork.log.errors import LogCorrupt
from cogwork.log.segment import SUFFIX
from cogwork.log.segment_footer import SEGMENT_FOOTER_BYTES, SegmentFooter
from cogwork.log.segment_index import INDEX_ENTRY_BYTES, SegmentIndex

if TYPE_CHECKING:
    from cogwork.dataplane.tables.columns import Columns

__all__ = ("Segments",)


class _Mapped:
    """One segment."""

    def __init__(self, path: Path) -> None:
        """Map it.

        Raises:
            OSError: It is not there, or cannot be mapped.
            LogCorrupt: Its end is damaged.
        """
        with path.open("rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = max(len(self.data) - SEGMENT_FOOTER_BYTES, 0)
        self.footer = SegmentFooter.decode(self.data[end:], str(path), end)
        index = self.data[self.footer.index_position : end]
        whole = self.footer.index_count * INDEX_ENTRY_BYTES
        if len(index) != whole or not whole or value(index) != self.footer.index_checksum:
            raise LogCorrupt(str(path), self.footer.index_position, "the index is damaged")
        self.index = SegmentIndex.decode(index)
        # Where the block is that holds an offset: of whoever reads on.
        self.place = (self.footer.first_offset, self.index.positions[0])

    def fill(self, columns: Columns) -> None:
        following, position = self.place
        if following != columns.next:
            position = self.index.position_of(columns.next)
        position = columns.add_blocks(self.data, position, self.footer.index_position)
        self.place = (columns.next, position)


class Segments:
    """A stream's segments, of which the one that is being read is mapped. One reader's."""

    def __init__(self, directory: str) -> None:
        """Map nothing yet.

        Args:
            directory: Where they are.
        """
        self.directory = directory
        self._firsts: list[int] = []
        self._mapped: _Mapped | None = None

    def fill(self, columns: Columns) -> bool:
        """Add the records from the columns' next one on that are in one segment.

        Returns:
            Whether there were any.

        Raises:
            LogCorrupt: The segment is damaged.
            ValueError: A block is damaged.
        """
        mapped = self._segment_of(columns.next)
        if mapped is None:
            return False
        before = columns.next
        mapped.fill(columns)
        return columns.next > before or columns.is_full

    def _segment_of(self, offset: int) -> _Mapped | None:
        mapped = self._mapped
        if mapped is not None and mapped.footer.first_offset <= offset < mapped.footer.next_offset:
            return mapped
        self._mapped = None
        name = self._name_of(offset)
        if name is None:
            return None
        try:
            mapped = _Mapped(Path(self.directory, name))
        except (FileNotFoundError, ValueError):  # removed meanwhile
            self._firsts.clear()
            return None
        if not mapped.footer.first_offset <= offset < mapped.footer.next_offset:
            self._firsts.clear()
            return None
        self._mapped = mapped
        return mapped

    def _name_of(self, offset: int) -> str | None:
        """Find the last segment that begins at an offset or before."""
        if not self._firsts or offset >= self._firsts[-1]:
            self._firsts = _firsts_in(self.directory)
        at = bisect_right(self._firsts, offset) - 1
        return f"{self._firsts[at]:020d}{SUFFIX}" if at >= 0 else None


def _firsts_in(directory: str) -> list[int]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    stems = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdigit())

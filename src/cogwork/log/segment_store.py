"""The segments of a stream: sealed one after the other, read, and removed from the front.

Theory of operation. A stream's newest blocks are in the write-ahead log and in memory; from time to
time whoever owns them seals them here. A segment is written under a temporary name, synchronised,
renamed, and the directory synchronised: it is there whole, or not at all. Until it is sealed for
certain, the write-ahead log keeps what it holds. Reading needs nothing that writing holds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import contextmanager
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from cogwork.log.disk_queue import DiskQueue, Operation
from cogwork.log.errors import FileMissing, LogError, OffsetGone
from cogwork.log.segment import SUFFIX, Segment, segment_name
from cogwork.log.segment_builder import build_segment
from cogwork.log.segment_header import STREAM_ID_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from cogwork.log.block import Block
    from cogwork.log.directory import Directory

__all__ = ("SegmentStore",)

TEMPORARY_NAME = "segment.tmp"
WARM_MAX = 4
"""The index of so many segments is kept in memory."""

READ_BYTES = 1 << 20

_first_offset = attrgetter("first_offset")
_last_time_ms = attrgetter("footer.last_time_ms")


class SegmentStore:
    """A stream's segments, oldest first.

    Attributes:
        segments: All of them; they follow each other.
        next_offset: The offset that the next segment begins at; None while there never was one.
        gone_before: Below it all has been given up, as far as that was since the start.
        size_bytes: Of all files.
    """

    def __init__(
        self, directory: Directory, queue: DiskQueue, stream_id: bytes = bytes(STREAM_ID_BYTES)
    ) -> None:
        """Open the segments that are there.

        Args:
            directory: Where; it is this stream's alone.
            queue: The way to the disk.
            stream_id: Whose segments they are: 16 octets.

        Raises:
            LogError: One cannot be used, or is missing; the type says why.
        """
        self._directory = directory
        self._queue = queue
        self._stream_id = stream_id
        self._warm: list[Segment] = []
        self._is_making = False
        self._clear_count = self._synced_clear_count = 0
        self.segments: list[Segment] = []
        self.next_offset: int | None = None
        self.gone_before = 0
        self.size_bytes = 0
        for name in directory.names():
            if name == TEMPORARY_NAME:
                directory.remove(name)
            elif name.endswith(SUFFIX):
                self._admit(Segment(directory, name))

    @property
    def path(self) -> str:
        """Where the segments are."""
        return self._directory.path

    @property
    def first_offset(self) -> int | None:
        """The oldest offset that can be read; the next one while there is none."""
        return self.segments[0].first_offset if self.segments else self.next_offset

    def holds(self, offset: int) -> bool:
        """Return whether a segment is there that has an offset."""
        there = self.segments
        return bool(there) and there[0].first_offset <= offset < there[-1].next_offset

    # -- writing

    def seal(
        self,
        blocks: Iterable[Block],
        done: Callable[[Segment], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Make a segment of blocks, behind all others; one at a time.

        Args:
            blocks: They follow each other, and the last segment.
            done: Called with the segment, once it is there for certain.
            failed: Called with a `ValueError` where they do not follow, with an `OSError` where
                the disk did not do it; nothing of it is left.
        """
        self._queue.start(self.sealing(blocks), done, failed)

    def sealing(self, blocks: Iterable[Block]) -> Generator[Operation, None, Segment]:
        """Make a segment step by step, as `seal` does; blocks are asked for as it goes on."""
        rest = iter(blocks)
        first = next(rest, None)
        if first is None:
            raise ValueError("a segment has at least one block")
        self._check_next(first.offset)
        with self._making():
            fd = self._directory.create(TEMPORARY_NAME)
            try:
                position = 0
                for piece in build_segment(self._stream_id, chain((first,), rest)):
                    yield Operation(fd, position, piece)
                    position += sum(map(len, piece))
                yield Operation.sync_of(fd)
            finally:
                self._directory.close_file(fd)
            return (yield from self._naming(first.offset))

    @contextmanager
    def _making(self) -> Iterator[None]:
        """Let one segment be made at a time, and leave nothing of one that cannot be."""
        if self._is_making:
            raise ValueError("another segment is being made")
        self._is_making = True
        try:
            yield
        except (OSError, LogError, ValueError):
            self._directory.remove(TEMPORARY_NAME)
            raise
        finally:
            self._is_making = False

    def _naming(self, offset: int) -> Generator[Operation, None, Segment]:
        """Give a file that is ready its name."""
        name = segment_name(offset)
        while (count := self._clear_count) != self._synced_clear_count:
            # Else a power cut may bring back what does not go up to here.
            yield Operation.sync_of(self._directory.fd)
            self._synced_clear_count = count
        self._check_next(offset)
        self._directory.rename(TEMPORARY_NAME, name)
        try:
            yield Operation.sync_of(self._directory.fd)
            self._check_next(offset)  # all may have been cleared meanwhile
            segment = Segment(self._directory, name)
        except (OSError, LogError, ValueError):
            self._directory.remove(name)
            self._clear_count += 1
            raise
        return self._admit(segment)

    def _check_next(self, offset: int) -> None:
        if self.next_offset is not None and offset != self.next_offset:
            raise ValueError(f"offset {self.next_offset} is next, not {offset}")

    def _admit(self, segment: Segment) -> Segment:
        segment.check_place(self._stream_id, self.next_offset)
        self.segments.append(segment)
        self.next_offset = segment.next_offset
        self.size_bytes += segment.size_bytes
        return segment

    # -- reading

    def read(self, offset: int, max_bytes: int = READ_BYTES) -> list[Block]:
        """Read blocks of one segment, the first of which holds an offset.

        Args:
            offset: From where on.
            max_bytes: About how much, but at least one block.

        Returns:
            Nothing where the segments end before it.

        Raises:
            OffsetGone: It is below the first one.
            LogCorrupt: A block is damaged.
            FileMissing: Somebody has removed the file.
        """
        if not self.segments or offset >= self.segments[-1].next_offset:
            return []
        at = bisect_right(self.segments, offset, key=_first_offset) - 1
        if at < 0:
            raise OffsetGone(self.segments[0].first_offset)
        segment = self.segments[at]
        self._keep_warm(segment)
        try:
            return segment.read(offset, max_bytes)
        except FileNotFoundError:
            if segment in self.segments:
                raise FileMissing(self._directory.path_of(segment.name)) from None
            raise OffsetGone(self.first_offset or 0) from None

    def offset_at(self, time_ms: int) -> int | None:
        """Return the offset of the first record of a time or later; None where there is none.

        Raises:
            LogCorrupt: A block on the way is damaged.
        """
        at = bisect_left(self.segments, time_ms, key=_last_time_ms)
        if at == len(self.segments):
            return None
        self._keep_warm(self.segments[at])
        return self.segments[at].offset_at(time_ms)

    def _keep_warm(self, segment: Segment) -> None:
        if self._warm and self._warm[-1] is segment:
            return
        if segment in self._warm:
            self._warm.remove(segment)
        self._warm.append(segment)
        if len(self._warm) > WARM_MAX:
            self._warm.pop(0).forget_index()

    # -- retention

    def retain(
        self,
        *,
        before_offset: int | None = None,
        before_time_ms: int | None = None,
        max_bytes: int | None = None,
    ) -> int | None:
        """Remove the oldest segments, as far as one of the bounds lets go of all they hold.

        Args:
            before_offset: Nobody needs records below.
            before_time_ms: Nobody needs older records.
            max_bytes: Above this size the oldest go.

        Returns:
            The oldest offset that can be read now.
        """
        gone = 0
        size_bytes = self.size_bytes
        for segment in self.segments:
            footer = segment.footer
            is_over = (
                (before_offset is not None and footer.next_offset <= before_offset)
                or (before_time_ms is not None and footer.last_time_ms < before_time_ms)
                or (max_bytes is not None and size_bytes > max_bytes)
            )
            if not is_over:
                break
            gone += 1
            size_bytes -= segment.size_bytes
        self._remove(gone)
        return self.first_offset

    def clear(self, next_offset: int) -> None:
        """Remove all segments; the next one begins at an offset."""
        self._clear_count += bool(self.segments)
        self._remove(len(self.segments))
        self.gone_before = max(self.gone_before, next_offset)
        self.next_offset = next_offset

    def _remove(self, count: int) -> None:
        """Remove the oldest segments, in order, so that never one between is missing."""
        for _ in range(count):
            segment = self.segments[0]
            self._directory.remove(segment.name)
            self.gone_before = max(self.gone_before, segment.next_offset)
            del self.segments[0]
            self.size_bytes -= segment.size_bytes
            if segment in self._warm:
                self._warm.remove(segment)

    def verify(self) -> None:
        """Read and check every segment.

        Raises:
            LogCorrupt: One is damaged.
        """
        for segment in self.segments:
            for _ in segment.verify():
                pass

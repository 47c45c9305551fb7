"""The chunks of a stream that are sealed here: what cannot be read refuses a read and nothing else.

A damaged or missing file is this replica's trouble alone: others have the same records, and whoever
is refused here asks them. The operator is told of each file's damage once.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cogwork.log.errors import FileMissing, LogError, OffsetGone
from cogwork.plugin.engine.chunks import decode_chunk
from cogwork.plugin.engine.errors import Truncated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.log.segment_store import SegmentStore
    from cogwork.plugin.engine.batch import Chunk

__all__ = ("SealedChunks",)

TOLD_MAX = 100
"""So many kinds of damage are told at most."""


class SealedChunks:
    """What a replica reads of its segments."""

    def __init__(
        self,
        segments: SegmentStore,
        report: Callable[[str], None],
        is_replayed: Callable[[], bool] = lambda: True,
    ) -> None:
        """Read from segments.

        Args:
            segments: The stream's here.
            report: Takes what the operator should know.
            is_replayed: Says whether all is done again that the log has: what has been given up by
                that is no loss.
        """
        self._segments = segments
        self._report = report
        self._is_replayed = is_replayed
        self._told: set[str] = set()

    def read(self, offset: int, max_bytes: int) -> list[Chunk]:
        """Return chunks of one segment, cut so that the first begins at an offset.

        Args:
            offset: Of a sealed record that the stream has.
            max_bytes: About how much.

        Raises:
            Truncated: It has been given up here, with others to come that are newer.
            Unavailable: A file is damaged, missing, or cannot be read.
        """
        with self._refusing():
            self._demand(offset)
            blocks = self._segments.read(offset, max_bytes)
            return [decode_chunk(block.data).since(offset) for block in blocks]

    def offset_at(self, time_ms: int, first_offset: int | None = None) -> int | None:
        """Return the offset of the first record of a time or later; None where there is none.

        Args:
            time_ms: The time.
            first_offset: Of the stream's first record, where that is a sealed one.

        Raises:
            Unavailable: A file is damaged, missing, or cannot be read.
        """
        with self._refusing():
            if first_offset is not None:
                self._demand(first_offset)
            return self._segments.offset_at(time_ms)

    def _demand(self, offset: int) -> None:
        """See that a segment is there for a record that was sealed and never given up."""
        segments = self._segments
        if offset < segments.gone_before or segments.holds(offset) or not self._is_replayed():
            return
        raise FileMissing(f"the segment with offset {offset} in {segments.path}")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Have whoever asks hear of the replica, and the operator of the file."""
        try:
            yield
        except OffsetGone as error:
            raise Truncated(error.first) from error
        except (LogError, OSError) as error:
            self._tell(str(error))
            raise Unavailable(
                "this replica cannot read what it has sealed: its container's log says why"
            ) from error

    def _tell(self, text: str) -> None:
        if text not in self._told and len(self._told) < TOLD_MAX:
            self._told.add(text)
            self._report(f"cannot read a sealed segment, other replicas serve the read: {text}")

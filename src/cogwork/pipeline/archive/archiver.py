"""The driver: it plans ranges, has workers write them, and commits what they wrote.

Theory of operation. While one range is committed the next one is being written. A commit may find
that the mark has moved, as another archiver was quicker: then what was written for it, and what is
being written after it, is dropped, and it goes on from the new mark. The driver keeps nothing that
it would miss if it were killed: whatever was written and not committed has names that are in no
table, and is swept.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from cogwork.amqp.exceptions import CogworkError
from cogwork.pipeline.archive import layout
from cogwork.pipeline.archive.errors import DataLost, MarkMoved
from cogwork.pipeline.archive.notice import Notice, unheard
from cogwork.pipeline.archive.work import MISMATCHED_LISTED_MAX, Job, Written, remove, sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.pipeline.archive.archive import Archive
    from cogwork.pipeline.archive.notice import Listener
    from cogwork.pipeline.archive.origin import Origin, Schemas
    from cogwork.pipeline.archive.table import ArchiveTable
    from cogwork.pipeline.archive.workers import Workers

__all__ = ("Archiver", "Outcome", "Settings")

CUT_ROWS = 10_000
"""Ranges are cut at multiples of it, as record batches are: so none is cut in two."""

TASK_ROWS_MIN = 50_000
"""A range that is smaller is not shared out any further."""


class Settings(NamedTuple):
    """How an archiver goes about it.

    Attributes:
        commit_rows: The most records of one commit.
        fail_on_data_loss: Whether records that the stream gave up too early are an error.
        trim_after: Whether the stream may give up what is archived.
        adopt: Whether to take over a table whose catalog was lost.
    """

    commit_rows: int = 1_000_000
    fail_on_data_loss: bool = True
    trim_after: bool = False
    adopt: bool = False


class Outcome(NamedTuple):
    """What became of one stream.

    Attributes:
        stream: Which one.
        start: Where its table went on.
        mark: Where it goes on now.
        rows: How many records were added here.
        commits: In how many commits.
        dropped: How many commits another archiver was quicker with.
        lost: How many records the stream had given up.
        mismatched: How many bodies are not what its schema says.
        mismatches: The first ones of these.
        trimmed: The first record that the stream has still; None where it was not trimmed.
    """

    stream: str
    start: int
    mark: int
    rows: int = 0
    commits: int = 0
    dropped: int = 0
    lost: int = 0
    mismatched: int = 0
    mismatches: tuple[tuple[int, str], ...] = ()
    trimmed: int | None = None


class _Range(NamedTuple):
    """What one commit adds: from the mark, but for what was lost, up to the next mark."""

    mark: int
    start: int
    end: int


class Archiver:
    """Archives streams, one after the other."""

    def __init__(
        self,
        origin: Origin,
        archive: Archive,
        workers: Workers,
        settings: Settings | None = None,
        on_notice: Listener = unheard,
    ) -> None:
        """Touch nothing yet.

        Args:
            origin: Where the streams are.
            archive: Where they are to be.
            workers: Who writes.
            settings: How.
            on_notice: Told each step.
        """
        self._origin = origin
        self._archive = archive
        self._workers = workers
        self._settings = settings or Settings()
        self._notice = on_notice
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End after the commit that is under way; may be called by a signal's handler."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stopping.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait; return whether it was told to end."""
        return self._stopping.wait(timeout_s)

    def run(self, stream: str) -> Outcome:
        """Archive a stream up to where it ends now.

        Args:
            stream: Its name.

        Raises:
            UnknownStream: There is none.
            ForeignTable: Its table is another's.
            PlaceTaken: There are files of another table in the place of a new one.
            StreamMadeAnew: It is not the one in the table.
            DataLost: It has given up records too early.
            ArchiveError: Writing failed.
        """
        bounds = self._origin.bounds(stream)
        table = self._archive.make_table(stream, bounds.first, adopt=self._settings.adopt)
        self._origin.check_is_the_same(table)
        table.forbid_retries()
        schemas = self._origin.schemas(stream)
        if schemas is not None:
            table.set_properties({layout.SCHEMA: schemas.described})
        self._notice(Notice("opened", stream, table.mark, bounds.next))
        run = _Run(self, table, schemas, bounds.next)
        outcome = run.to_the_end()
        if self._settings.trim_after and outcome.mark > bounds.first:
            outcome = outcome._replace(trimmed=self._trim(table))
        return outcome

    def _trim(self, table: ArchiveTable) -> int:
        """Hand retention back to the stream, once the archive is on disk."""
        table.refresh()
        for path in table.metadata_paths():
            sync(path)
        first = self._origin.trim(table.stream, table.mark)
        self._notice(Notice("trimmed", table.stream, first, table.mark))
        return first


class _Run:
    """One stream, from the mark to where it ended when this began."""

    def __init__(
        self, archiver: Archiver, table: ArchiveTable, schemas: Schemas | None, head: int
    ) -> None:
        self._archiver = archiver
        self._origin = archiver._origin  # the run is a part of its archiver
        self._workers = archiver._workers
        self._settings = archiver._settings
        self._notice = archiver._notice
        self._table = table
        self._schemas = schemas
        self._head = head
        self._outcome = Outcome(table.stream, table.mark, table.mark)
        self._under_way: deque[tuple[_Range, Future[list[Written]]]] = deque()

    def to_the_end(self) -> Outcome:
        """Archive it; return what became of it."""
        with ThreadPoolExecutor(1, thread_name_prefix="cogwork-archive-ahead") as pool:
            try:
                while self._under_way or self._begin(pool, self._outcome.mark, ahead=False):
                    self._go_on(pool)
            except BaseException:
                self._workers.cancel()
                self._drop_all()
                raise
        return self._outcome

    def _go_on(self, pool: ThreadPoolExecutor) -> None:
        """Commit the oldest range that is under way, while the next one is written."""
        part, writing = self._under_way[0]
        written = self._finished(part, writing)
        # From here on only the table knows whether the files are in it: where the commit fails
        # in an unknown way, they are left for the sweep.
        self._under_way.popleft()
        if written is None:  # some of it is lost by now: plan again
            return
        self._begin(pool, part.end, ahead=True)
        if not self._commit(part, written):
            self._drop_all()

    def _begin(self, pool: ThreadPoolExecutor, mark: int, *, ahead: bool) -> bool:
        """Have workers write the next range; return False where there is none, or this is to end.

        Ahead of a commit it raises nothing, and begins nothing that is not plain: that waits until
        the commit is done.
        """
        if mark >= self._head or self._archiver.is_stopping:
            return False
        try:
            first = self._origin.bounds(self._table.stream).first
        except CogworkError:
            if ahead:
                return False
            raise
        if first > mark:
            if ahead:
                return False
            self._lose(mark, min(first, self._head))
            if first >= self._head:
                return False
        start = max(mark, first)
        end = _cut(start + self._settings.commit_rows)
        if end <= start:
            end = start + self._settings.commit_rows
        part = _Range(mark, start, min(self._head, end))
        self._notice(Notice("planned", self._table.stream, part.start, part.end))
        self._under_way.append((part, pool.submit(self._workers.write, self._jobs(part))))
        return True

    def _lose(self, start: int, end: int) -> None:
        """Go on without records, or does not."""
        if self._settings.fail_on_data_loss:
            raise DataLost(self._table.stream, start, end)
        self._notice(Notice("lost", self._table.stream, start, end, end - start))

    def _jobs(self, part: _Range) -> list[Job]:
        table = self._table
        cuts = _cuts(part.start, part.end, self._workers.count)
        return [
            Job(
                url=self._origin.url,
                stream=table.stream,
                prefix=table.file_prefix,
                location=table.location,
                io={key: str(value) for key, value in table.io.properties.items()},
                start=start,
                end=end,
                schemas=None if self._schemas is None else self._schemas.registry,
                timeout_s=self._origin.timeout_s,
                certificates=self._origin.certificates,
            )
            for start, end in pairwise(cuts)
        ]

    def _finished(self, part: _Range, writing: Future[list[Written]]) -> list[Written] | None:
        """Wait for a range; None where it was overtaken, by retention or another archiver."""
        try:
            written = writing.result()
        except Exception:
            self._table.refresh()
            if self._table.mark != part.mark:  # its files may have been swept in the middle
                self._outcome = self._moved(self._table.mark)
                return None
            if self._origin.bounds(self._table.stream).first <= part.start:
                raise
            return None
        self._notice(Notice("written", self._table.stream, part.start, part.end))
        return written

    def _commit(self, part: _Range, written: Sequence[Written]) -> bool:
        """Add what was written; return False where somebody else was quicker."""
        paths = [path for each in written for path in each.paths]
        self._notice(Notice("committing", self._table.stream, part.start, part.end, len(paths)))
        try:
            self._table.append(part.mark, part.end, paths, self._said(part, written))
        except MarkMoved as moved:
            self._remove(written)
            self._outcome = self._moved(moved.mark)
            self._notice(Notice("dropped", self._table.stream, part.start, part.end, len(paths)))
            return False
        before = self._outcome
        listed = [*before.mismatches, *(it for each in written for it in each.mismatches)]
        self._outcome = before._replace(
            mark=part.end,
            rows=before.rows + part.end - part.start,
            commits=before.commits + 1,
            lost=before.lost + part.start - part.mark,
            mismatched=before.mismatched + sum(each.mismatched for each in written),
            mismatches=tuple(listed[:MISMATCHED_LISTED_MAX]),
        )
        rows = part.end - part.start
        self._notice(Notice("committed", self._table.stream, part.start, part.end, rows))
        return True

    def _moved(self, mark: int) -> Outcome:
        """Another archiver was quicker."""
        return self._outcome._replace(mark=mark, dropped=self._outcome.dropped + 1)

    def _said(self, part: _Range, written: Sequence[Written]) -> dict[str, str]:
        """Return what the snapshot is to say, besides the mark."""
        said = {layout.ATTEMPT: uuid4().hex, layout.SEAM: written[-1].seam}
        if part.start > part.mark:
            said[layout.LOST] = f"{part.mark}-{part.start}"
        if self._schemas is not None or self._table.mismatched:
            count = sum(each.mismatched for each in written)
            offsets = [offset for each in written for offset, _ in each.mismatches]
            listed = (offsets + self._table.mismatched_offsets())[:MISMATCHED_LISTED_MAX]
            said[layout.MISMATCHED] = str(self._table.mismatched + count)
            said[layout.MISMATCHED_OFFSETS] = json.dumps(listed)
        return said

    def _drop_all(self) -> None:
        """Wait for what was begun and is not to be committed, and remove its files."""
        while self._under_way:
            part, writing = self._under_way.popleft()
            try:
                written = writing.result()
            except Exception:  # it left nothing, or what the sweep finds
                continue
            self._remove(written)
            self._notice(Notice("dropped", self._table.stream, part.start, part.end))

    def _remove(self, written: Sequence[Written]) -> None:
        for each in written:
            for path in each.paths:
                remove(self._table.io, path)


def _cut(offset: int) -> int:
    """Return the multiple at or below an offset."""
    return offset - offset % CUT_ROWS if offset >= CUT_ROWS else offset


def _cuts(start: int, end: int, count: int) -> list[int]:
    """Share a range out: its cuts are at multiples, but for its ends."""
    parts = max(1, min(count, (end - start) // TASK_ROWS_MIN))
    inner = {_cut(start + (end - start) * part // parts) for part in range(1, parts)}
    return [start, *sorted(cut for cut in inner if start < cut < end), end]

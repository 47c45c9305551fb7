"""Ends Spark's executors as `kill -9` does, from within one of their Python workers.

A worker is forked by a daemon that the executor's JVM started. What a point has killed is noted in
a directory that all workers see: the task that is run again goes on.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa


def parent_of(process: int) -> int:
    """Returns a process's parent, as Linux tells it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def kill_executor() -> None:
    """Kills the JVM that this worker works for."""
    os.kill(parent_of(os.getppid()), signal.SIGKILL)


class _Killer:
    def __init__(self, place: Path, points: Sequence[int]) -> None:
        place.mkdir()
        self._place = place
        self._points = sorted(points)

    def killed(self) -> int:
        """Counts what was killed."""
        return len(list(self._place.glob("killed-*")))

    def _is_first(self, name: str) -> bool:
        with suppress(FileExistsError):
            (self._place / name).touch(exist_ok=False)
            return True
        return False


class KillsAtOffsets(_Killer):
    """Passes rows on; the first task in which the row of a point comes loses its executor."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            offsets = set(batch.column("offset").to_pylist())
            for point in self._points:
                if point in offsets and self._is_first(f"killed-{point}"):
                    kill_executor()
            yield batch


class KillsAtSteps(_Killer):
    """Counts steps over all workers; the one that takes that of a point dies with its executor."""

    def __call__(self, step: str) -> None:
        number = 0
        while not self._is_first(f"step-{number}"):
            number += 1
        if number in self._points and self._is_first(f"killed-{number}"):
            kill_executor()
            os.kill(os.getpid(), signal.SIGKILL)

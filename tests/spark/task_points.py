"""What happens in Spark's Python workers when a row or a step is reached.

Executors end as by `kill -9`, from within one of their workers: a worker is forked by a daemon that
the executor's JVM started. What a point has done is noted in a directory that all workers see: the
task that is run again goes on.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa


WAIT_S = 30.0


def parent_of(process: int) -> int:
    """Return a process's parent, as Linux tells it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def kill_executor() -> None:
    """Kill the JVM that this worker works for."""
    os.kill(parent_of(os.getppid()), signal.SIGKILL)


class _Killer:
    def __init__(self, place: Path, points: Sequence[int]) -> None:
        place.mkdir()
        self._place = place
        self._points = sorted(points)

    def killed(self) -> int:
        """Count what was killed."""
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
                    break
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


class Meets:
    """Passes rows on; at one of them it says so, and waits until it is told to go on."""

    def __init__(self, place: Path, offset: int) -> None:
        self.place = place
        self.offset = offset

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self.offset in batch.column("offset").to_pylist():
                (self.place / "met").touch()
                until_s = monotonic() + WAIT_S
                while not (self.place / "gone-on").exists():
                    assert monotonic() < until_s
                    sleep(0.01)
            yield batch

    def has_met(self) -> bool:
        return (self.place / "met").exists()

    def go_on(self) -> None:
        (self.place / "gone-on").touch()

"""Who writes: threads of this process, or the workers of a Spark session, here or on a cluster.

Theory of operation. One partition of a job of Spark is one range, so Spark shares the ranges out,
and tries one again whose worker was lost; the files of the lost one are in no report, so in no
commit. What travels are jobs and reports, never records.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import msgspec
import pyarrow as pa

from cogwork.pipeline.archive.errors import ArchiveError
from cogwork.pipeline.archive.work import Job, Written, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ("SparkWorkers", "ThreadWorkers", "Workers")


LOST_WORKER = "Python worker exited unexpectedly"
RAISED = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z]\w*: (.+)$", re.MULTILINE)
"""The last line of a Python traceback; what the JVM adds to it begins with a tab or a blank."""


class Workers(Protocol):
    """Writes ranges.

    Attributes:
        count: How many ranges at a time.
    """

    count: int

    def write(self, jobs: Sequence[Job]) -> list[Written]:
        """Do jobs, and return their reports in the same order."""

    def cancel(self) -> None:
        """Have what is under way end soon, with an error."""


class ThreadWorkers:
    """Threads of this process: no Spark, no Java.

    Attributes:
        count: How many.
    """

    def __init__(
        self, count: int | None = None, on_step: Callable[[str], None] | None = None
    ) -> None:
        """Start no thread yet.

        Args:
            count: How many; as many as there are processors if not given.
            on_step: Told what a worker does.
        """
        self.count = count or os.cpu_count() or 1
        self._on_step = on_step

    def write(self, jobs: Sequence[Job]) -> list[Written]:
        """Do jobs side by side."""
        with ThreadPoolExecutor(self.count, thread_name_prefix="cogwork-archive") as pool:
            return list(pool.map(lambda job: write(job, self._on_step), jobs))

    def cancel(self) -> None:
        """Let what is under way end by itself: it takes seconds."""


class SparkWorkers:
    """The Python workers of a Spark session.

    Attributes:
        count: How many tasks run at a time.
    """

    GROUP = "cogwork-archive"

    def __init__(self, session: SparkSession, on_step: Callable[[str], None] | None = None) -> None:
        """Take a session.

        Args:
            session: Started, here or elsewhere.
            on_step: Told what a worker does, in the worker.
        """
        self._session = session
        self._on_step = on_step
        self.count = _parallelism(session)

    def write(self, jobs: Sequence[Job]) -> list[Written]:
        """Do each job as a task.

        Raises:
            ArchiveError: One of them failed as often as Spark tries.
        """
        packed = [msgspec.json.encode(job) for job in jobs]
        task = _task_of(packed, self._on_step)
        numbers = self._session.range(0, len(packed), 1, len(packed))
        tasks = numbers.mapInArrow(task, "number bigint, report string")
        try:
            rows = tasks.collect()
        except Exception as error:  # Spark has several families of them
            raise ArchiveError(f"Spark could not write: {_cause_of(str(error))}") from error
        reports = {row["number"]: row["report"] for row in rows}
        return [msgspec.json.decode(reports[number], type=Written) for number in range(len(jobs))]

    def cancel(self) -> None:
        """Have Spark end its tasks."""
        context = getattr(self._session, "sparkContext", None)
        if context is not None:
            context.cancelAllJobs()
        else:  # over Spark Connect
            self._session.interruptAll()


def _parallelism(session: SparkSession) -> int:
    """Ask how many tasks run at a time; a session over Spark Connect does not tell."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:  # each version of Connect refuses in its own way
        return max(1, int(session.conf.get("spark.default.parallelism", "2") or 2))


def _task_of(
    packed: list[bytes], on_step: Callable[[str], None] | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make what a Spark task runs: it knows all jobs, and do those whose numbers it gets."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                job = msgspec.json.decode(packed[number], type=Job)
                report = msgspec.json.encode(write(job, on_step)).decode()
                yield pa.RecordBatch.from_pydict({"number": [number], "report": [report]})

    return task


def _cause_of(text: str) -> str:
    """Find the line that says what a Python worker raised, in what Spark makes of it."""
    if LOST_WORKER in text:
        return "a Python worker was lost"
    raised = RAISED.findall(text)
    if raised:
        return str(raised[-1])
    return next((line.strip() for line in text.splitlines() if line.strip()), "it does not say why")

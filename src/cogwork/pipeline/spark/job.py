"""A user's own PySpark job: what it finds, how it ends, and where it went wrong.

Theory of operation. The job is a file of Python that is run as a program; it finds `spark` and a
few functions that know the container. What it raises becomes one line that names the line of the
file: the traceback of Spark, of its JVM and of its workers says a page of what the user cannot
change. Streaming queries that still run at the end of the file go on until they end, or somebody
ends the program. One that failed before, and the job was not told, fails the job then.
"""

from __future__ import annotations

import runpy
import sys
import traceback
from contextlib import contextmanager, nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogwork.client.connection.certificates import NONE, Certificates
from cogwork.pipeline.spark.errors import JobFailed
from cogwork.pipeline.spark.lines import line_of_spark
from cogwork.pipeline.spark.words import CERTIFICATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from cogwork.pipeline.spark.query_runs import QueryRuns

__all__ = ("JobTools", "check_job", "run_job")

LOOK_S = 1
"""For each of the queries in turn: one that goes on for good must not hide that another failed."""

TOLD_S = 5.0
"""How long to wait for what Spark's listener tells of queries that have ended."""


class JobTools:
    """What a job finds besides `spark`."""

    def __init__(self, spark: SparkSession, url: str, certificates: Certificates = NONE) -> None:
        """Initialize it; it does nothing yet.

        Args:
            spark: The session.
            url: Of the container.
            certificates: For TLS; workers find the files at the same places.
        """
        self._spark = spark
        self.url = url
        named = zip(
            CERTIFICATES,
            (certificates.ca_file, certificates.cert_file, certificates.key_file),
            strict=True,
        )
        self._reached = {"url": url} | {name: file for name, file in named if file is not None}

    def names(self) -> dict[str, Any]:
        """Return what the job finds, by name."""
        return {
            "spark": self._spark,
            "url": self.url,
            "source": self.source,
            "live": self.live,
            "sink": self.sink,
            "live_sink": self.live_sink,
        }

    def source(self, stream: str, schema: str | None = None, **options: str) -> DataFrame:
        """Return a stream, or several between commas, as a table.

        Args:
            stream: The streams' names.
            schema: The columns that are wanted, as DDL; None for all.
            **options: Those of the source.
        """
        reader = self._spark.read.format("cogwork").options(**{**self._reached, **options})
        return (reader if schema is None else reader.schema(schema)).load(stream)

    def live(self, stream: str, schema: str | None = None, **options: str) -> DataFrame:
        """Return a stream as a table that grows, for a streaming query."""
        reader = self._spark.readStream.format("cogwork").options(**{**self._reached, **options})
        return (reader if schema is None else reader.schema(schema)).load(stream)

    def sink(self, rows: DataFrame, address: str, **options: str) -> None:
        """Publish the rows of a table."""
        writer = rows.write.format("cogwork").options(**{**self._reached, **options})
        writer.mode("append").save(address)

    def live_sink(
        self, rows: DataFrame, address: str, checkpoint: str, **options: str
    ) -> DataStreamWriter:
        """Return a query that publishes rows as they come; `.start()` starts it."""
        writer = rows.writeStream.format("cogwork").options(**{**self._reached, **options})
        return writer.option("path", address).option("checkpointLocation", checkpoint)


def check_job(file: str) -> None:
    """Look whether a job is Python, which takes no session.

    Args:
        file: The job; what `runpy` runs besides Python's sources is not looked into.

    Raises:
        JobFailed: It is not; the text says where.
    """
    if not file.endswith(".py"):
        return
    try:
        compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise JobFailed(failure_of(error, file)) from error


def run_job(
    spark: SparkSession,
    file: str,
    arguments: Sequence[str],
    url: str,
    certificates: Certificates = NONE,
    *,
    runs: QueryRuns | None = None,
) -> None:
    """Run a job, and wait for the queries that it leaves running.

    Args:
        spark: The session.
        file: The job.
        arguments: What it finds in `sys.argv`.
        url: Of the container.
        certificates: For TLS.
        runs: What a listener knows of the session's queries; None where nobody listens.

    Raises:
        JobFailed: The job raised something, or a query of it failed; the text says what, and where
            in the file.
    """
    try:
        with _as_program(file, arguments), _watching(spark, runs):
            runpy.run_path(file, JobTools(spark, url, certificates).names(), "__main__")
        _await_all(spark.streams.active, runs)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            raise
    except Exception as error:
        raise JobFailed(failure_of(error, file)) from error


def _watching(spark: SparkSession, runs: QueryRuns | None) -> AbstractContextManager[None]:
    if runs is None:
        return nullcontext()
    from cogwork.pipeline.spark.failures import watching  # noqa: PLC0415 # needs the extra

    return watching(spark, runs)


def _await_all(queries: Sequence[StreamingQuery], runs: QueryRuns | None) -> None:
    """Wait until all queries have ended, in whichever order; the first that fails ends that."""
    _look_back(runs)
    while queries:
        queries = [each for each in queries if not each.awaitTermination(LOOK_S)]
        _look_back(runs)
    if runs is not None:
        runs.wait(TOLD_S)  # the listener's thread may be behind
        _look_back(runs)


def _look_back(runs: QueryRuns | None) -> None:
    """Raise what ended a query that is not active any more, where the job was not told."""
    if runs is not None:
        from cogwork.pipeline.spark.failures import raise_untold  # noqa: PLC0415 # needs the extra

        raise_untold(runs)


@contextmanager
def _as_program(file: str, arguments: Sequence[str]) -> Iterator[None]:
    """Let the job find its arguments, and modules beside it."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def failure_of(error: BaseException, file: str) -> str:
    """Say in one line what went wrong, and where in the user's file."""
    said = line_of_spark(error) or f"{type(error).__name__}: {_first_line(error)}"
    line = None
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:
            line = frame.lineno
    return f"{file}:{line}: {said}" if line is not None else f"{file}: {said}"


def _first_line(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


EXPLAINED = (
    *("collect", "count", "first", "foreach", "foreachPartition", "head", "localCheckpoint"),
    *("show", "take", "toArrow", "toLocalIterator", "toPandas"),
)
"""What makes Spark work on a table."""


@contextmanager
def explaining(spark: SparkSession, show: Callable[[str], None]) -> Iterator[None]:
    """Show the plan of each table before Spark works on it.

    Args:
        spark: The session.
        show: Gets the plan.
    """
    kind: Any = type(spark.range(0))
    before = {name: getattr(kind, name) for name in EXPLAINED if hasattr(kind, name)}
    before |= {name: kind.__dict__[name] for name in ("write", "writeStream")}
    depth = [0]

    def plan_of(frame: Any) -> None:  # noqa: ANN401 # of Spark or of Spark Connect
        if depth[0]:
            return
        with redirect_stdout(StringIO()) as printed:
            frame.explain(mode="formatted")
        show(printed.getvalue())

    def wrapped(method: Any) -> Any:  # noqa: ANN401 # whatever it is
        def run(frame: Any, *args: Any, **more: Any) -> Any:  # noqa: ANN401  # as above
            plan_of(frame)
            depth[0] += 1
            try:
                return method(frame, *args, **more)
            finally:
                depth[0] -= 1

        return run

    for name in before:
        found = before[name]
        is_property = isinstance(found, property)
        setattr(kind, name, property(wrapped(found.fget)) if is_property else wrapped(found))
    try:
        yield
    finally:
        for name, found in before.items():
            setattr(kind, name, found)

"""Queries of a job that fail before its file ends: the job fails too, unless it was told."""

from __future__ import annotations

from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from pyspark.errors import StreamingQueryException

from cogwork.pipeline.spark.errors import JobFailed
from cogwork.pipeline.spark.job import run_job
from cogwork.pipeline.spark.listener import listen, unlisten
from cogwork.pipeline.spark.query_runs import QueryRuns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from cogwork.pipeline.spark.listener import PositionListener

TRACEBACK = """py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: \
Traceback (most recent call last):
  File "{file}", line 3, in boom
    raise RuntimeError("the database is away")
RuntimeError: the database is away

\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""


class StreamingQuery:
    """One that failed; Spark calls it so."""

    runId = "run-1"  # noqa: N815 # Spark's name

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 # Spark's name
        if timeout is not None and timeout <= 0:
            raise ValueError("the timeout is above 0")
        raise StreamingQueryException("Query [id = x, runId = run-1] terminated")

    def processAllAvailable(self) -> None:  # noqa: N802 # Spark's name
        self.awaitTermination()

    def exception(self) -> StreamingQueryException | None:
        return StreamingQueryException("bad luck")


class Manager:
    """All of them; none is active any more."""

    active = ()

    def awaitAnyTermination(self) -> None:  # noqa: N802 # Spark's name
        StreamingQuery().awaitTermination()


class Session:
    """Whose only query failed while the job went on."""

    def __init__(self) -> None:
        self.streams = Manager()
        self.query = StreamingQuery()


def failed(place: Path) -> QueryRuns:
    runs = QueryRuns()
    runs.started("run-1", "writer")
    runs.ended("run-1", TRACEBACK.format(file=place / "job.py"))
    return runs


def run_text(place: Path, text: str, runs: QueryRuns) -> None:
    file = place / "job.py"
    file.write_text(text)
    session: Any = Session()
    run_job(session, str(file), [], "amqp://nowhere", runs=runs)


def test_a_query_that_failed_while_the_job_went_on_fails_it(tmp_path: Path) -> None:
    with pytest.raises(JobFailed) as caught:
        run_text(tmp_path, "", failed(tmp_path))
    assert str(caught.value) == f"{tmp_path}/job.py:3: RuntimeError: the database is away"


def test_a_failure_of_spark_itself_is_one_line_too(tmp_path: Path) -> None:
    runs = QueryRuns()
    runs.started("run-1", "writer")
    runs.ended("run-1", "org.apache.spark.SparkException: bad luck\n\tat x.y(Z.scala:1)")
    with pytest.raises(JobFailed) as caught:
        run_text(tmp_path, "", runs)
    assert str(caught.value) == (
        f"{tmp_path}/job.py: StreamingQueryException: Query writer terminated with exception: "
        "org.apache.spark.SparkException: bad luck"
    )


def test_the_end_of_a_query_that_is_told_late_is_waited_for(tmp_path: Path) -> None:
    runs = QueryRuns()
    runs.started("run-1", "writer")
    late = Timer(0.2, runs.ended, ("run-1", "ValueError: x"))
    late.start()
    with pytest.raises(JobFailed, match="Query writer terminated"):
        run_text(tmp_path, "", runs)
    late.join()


@pytest.mark.parametrize(
    "asked",
    [
        "spark.query.awaitTermination()",
        "spark.query.awaitTermination(5)",
        "spark.query.processAllAvailable()",
        "spark.streams.awaitAnyTermination()",
        "raise spark.query.exception()",
    ],
)
def test_what_a_job_was_told_is_its_own_affair(tmp_path: Path, asked: str) -> None:
    text = f"try:\n    {asked}\nexcept Exception as error:\n    pass\nelse:\n    assert False\n"
    before = vars(StreamingQuery).copy(), vars(Manager).copy()
    run_text(tmp_path, text, failed(tmp_path))
    assert (vars(StreamingQuery), vars(Manager)) == before, "methods are what they were"


@pytest.mark.parametrize("asked", ["spark.query.awaitTermination(0)", "spark.query.nothing()"])
def test_another_error_tells_nothing_of_a_failure(tmp_path: Path, asked: str) -> None:
    text = f"try:\n    {asked}\nexcept Exception:\n    pass\n"
    with pytest.raises(JobFailed, match="the database is away"):
        run_text(tmp_path, text, failed(tmp_path))


def test_a_query_that_was_told_to_end_fails_nothing(tmp_path: Path) -> None:
    runs = QueryRuns()
    runs.started("run-1", "writer")
    runs.ended("run-1", None)
    run_text(tmp_path, "", runs)


@pytest.fixture
def listener(spark: SparkSession) -> Iterator[PositionListener]:
    listener = listen(spark, "amqp://nowhere")
    yield listener
    unlisten(spark, listener)
    spark.streams.resetTerminated()  # or the next job is told of this one's


JOB = """
def boom(rows, batch):
    raise RuntimeError("the database is away")

rows = spark.readStream.format("rate").load()
query = rows.writeStream.foreachBatch(boom).start()
while query.isActive:
    pass
"""

ASKED = "\nassert 'the database is away' in str(query.exception())\n"

AWAITED = """
try:
    spark.streams.awaitAnyTermination()
except Exception:
    pass
spark.streams.resetTerminated()
"""


def test_it_is_so_with_spark(
    spark: SparkSession, listener: PositionListener, tmp_path: Path
) -> None:
    file = tmp_path / "job.py"
    file.write_text(JOB)
    with pytest.raises(JobFailed) as caught:
        run_job(spark, str(file), [], "amqp://nowhere", runs=listener.runs)
    assert str(caught.value) == f"{file}:3: RuntimeError: the database is away"


@pytest.mark.parametrize("asked", [ASKED, AWAITED], ids=["asked", "awaited"])
def test_a_job_that_is_told_by_spark_ends_well(
    spark: SparkSession, listener: PositionListener, tmp_path: Path, asked: str
) -> None:
    file = tmp_path / "job.py"
    file.write_text(JOB + asked)
    run_job(spark, str(file), [], "amqp://nowhere", runs=listener.runs)

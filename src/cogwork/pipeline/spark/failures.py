"""Queries of a job that fail behind its back: which those are, and what is raised for them.

Theory of operation. A query fails on a thread of Spark's. A job hears of it where it waits for the
query or asks how it ended; what it makes of that is its own affair. Where it does neither, nobody
would ever know. So the methods that tell a job are watched while its file runs, and the listener's
failures that none of them told are those of the job.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException
from pyspark.errors.exceptions.base import recover_python_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from cogwork.pipeline.spark.query_runs import QueryRuns

__all__ = ("raise_untold", "watching")

OF_A_QUERY = ("awaitTermination", "processAllAvailable", "exception")
OF_ALL = ("awaitAnyTermination",)


def raise_untold(runs: QueryRuns) -> None:
    """Raise what ended a query, where the job was not told.

    Args:
        runs: What the listener knows.

    Raises:
        StreamingQueryException: Such as the query itself raises, with the lines of the user's file.
    """
    failure = runs.untold_failure()
    if failure is not None:
        raise recover_python_exception(StreamingQueryException(failure))


@contextmanager
def watching(spark: SparkSession, runs: QueryRuns) -> Iterator[None]:
    """Take note of the failures that a job is told.

    Args:
        spark: The job's session; over Spark Connect, queries are of another class.
        runs: Takes the notes.
    """
    manager: Any = type(spark.streams)
    query: Any = sys.modules[manager.__module__].StreamingQuery
    watched = [(query, name) for name in OF_A_QUERY] + [(manager, name) for name in OF_ALL]
    before = [(kind, name, getattr(kind, name)) for kind, name in watched]
    for kind, name, method in before:
        setattr(kind, name, _noting(method, runs))
    try:
        yield
    finally:
        for kind, name, method in before:
            setattr(kind, name, method)


def _noting(method: Callable[..., Any], runs: QueryRuns) -> Callable[..., Any]:
    """Return a method that does the same, and note the failure that it raises or returns."""

    def note(asked: object, error: Exception) -> None:
        # The manager is asked about all; of its failures, the text names the query.
        runs.told(f"{getattr(asked, 'runId', '')} {error}")

    @functools.wraps(method)
    def run(asked: object, *args: object, **more: object) -> object:
        try:
            found = method(asked, *args, **more)
        except StreamingQueryException as error:
            note(asked, error)
            raise
        if isinstance(found, StreamingQueryException):
            note(asked, found)
        return found

    return run

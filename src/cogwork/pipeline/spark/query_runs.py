"""The queries of a session, as Spark tells of them: which run, what they did, and which failed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("QueryRun", "QueryRuns")


class QueryRun(msgspec.Struct):
    """A streaming query, from its start to its end.

    Attributes:
        query: Its name, or its id.
        batches: How many of its triggers have ended.
        rows: How many rows it has read.
    """

    query: str
    batches: int = 0
    rows: int = 0


class QueryRuns:
    """Is told by a thread of Spark's, and asked by others."""

    def __init__(self) -> None:
        """Initialize it; it knows of none yet."""
        self._changed = threading.Condition()
        self._running: dict[str, QueryRun] = {}
        self._seen: dict[str, QueryRun] = {}
        self._failures: dict[str, str] = {}
        self._told: set[str] = set()

    def started(self, run: str, query: str) -> None:
        """Note the start of one."""
        with self._changed:
            self._running[run] = self._seen[run] = QueryRun(query)

    def progressed(self, progress: dict[str, Any]) -> None:
        """Note a trigger's end, of Spark's JSON about it."""
        with self._changed:
            found = self._running.get(progress["runId"])
            if found is not None:
                found.batches += 1
                found.rows += int(progress.get("numInputRows") or 0)

    def ended(self, run: str, failure: str | None = None) -> None:
        """Note the end of one.

        Args:
            run: Its id.
            failure: What ended it; None where it was told to end, or had done all.
        """
        with self._changed:
            found = self._running.pop(run, None)
            if failure is not None:
                query = run if found is None else found.query
                self._failures[run] = f"Query {query} terminated with exception: {failure}"
            self._changed.notify_all()

    def told(self, text: str) -> None:
        """Note that the job was told a failure, maybe before this was.

        Args:
            text: Has the id of the run in it.
        """
        with self._changed:
            self._told.update(run for run in self._seen if run in text)

    def untold_failure(self) -> str | None:
        """Return what ended a query, where the job was not told; None where there is no such."""
        with self._changed:
            untold = (text for run, text in self._failures.items() if run not in self._told)
            return next(untold, None)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the ends of all have been told; return whether they have been."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout_s)

    @property
    def seen(self) -> Sequence[QueryRun]:
        """All there have been, in the order of their starts."""
        return tuple(self._seen.values())

"""The queries of a session, as Spark tells of them: which still run, and what they have done."""

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
        """Knows of none yet."""
        self._changed = threading.Condition()
        self._running: dict[str, QueryRun] = {}
        self._seen: list[QueryRun] = []

    def started(self, run: str, query: str) -> None:
        """Notes the start of one."""
        with self._changed:
            found = self._running[run] = QueryRun(query)
            self._seen.append(found)

    def progressed(self, progress: dict[str, Any]) -> None:
        """Notes a trigger's end, of Spark's JSON about it."""
        with self._changed:
            found = self._running.get(progress["runId"])
            if found is not None:
                found.batches += 1
                found.rows += int(progress.get("numInputRows") or 0)

    def ended(self, run: str) -> None:
        """Notes the end of one."""
        with self._changed:
            self._running.pop(run, None)
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Waits until the ends of all have been told; returns whether they have been."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout_s)

    @property
    def seen(self) -> Sequence[QueryRun]:
        """All there have been, in the order of their starts."""
        return tuple(self._seen)

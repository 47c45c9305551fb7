"""How many of its tasks Spark has done, asked while it works on them by another thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

__all__ = ("TaskCount", "task_counter")


RUNNING = "RUNNING"


class TaskCount(NamedTuple):
    """Of all stages since the counter was made.

    Attributes:
        done: Tasks that have ended.
        total: Tasks that Spark knows of; more come with each stage.
    """

    done: int
    total: int


def task_counter(session: SparkSession) -> Callable[[], TaskCount]:
    """Return what counts a session's tasks; over Spark Connect the server tells."""
    if hasattr(session, "registerProgressHandler") and not _has_context(session):
        told = _Told()
        cast("Any", session).registerProgressHandler(told)
        return told.count
    return _Asked(session.sparkContext.statusTracker()).count


def _has_context(session: SparkSession) -> bool:
    return getattr(session, "sparkContext", None) is not None


class _Asked:
    """Asks the driver in this process, for all jobs that came since."""

    def __init__(self, tracker: Any) -> None:  # noqa: ANN401 # PySpark has no types for it
        self._tracker = tracker
        self._ended = set(tracker.getJobIdsForGroup())
        self._stages: dict[int, TaskCount] = {}

    def count(self) -> TaskCount:
        for job in set(self._tracker.getJobIdsForGroup()) - self._ended:
            told = self._tracker.getJobInfo(job)
            for stage in () if told is None else told.stageIds:
                info = self._tracker.getStageInfo(stage)
                if info is not None:
                    self._stages[stage] = TaskCount(info.numCompletedTasks, info.numTasks)
            if told is None or told.status != RUNNING:
                self._ended.add(job)
        return _total(self._stages.values())


class _Told:
    """Is told by a server."""

    def __init__(self) -> None:
        self._stages: dict[tuple[str | None, int], TaskCount] = {}

    def __call__(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,
        operation_id: str | None,
        done: bool,
    ) -> None:
        del inflight_tasks, done
        for each in stages or ():
            key = operation_id, each.stage_id
            self._stages[key] = TaskCount(each.num_completed_tasks, each.num_tasks)

    def count(self) -> TaskCount:
        return _total(list(self._stages.values()))


def _total(counts: Iterable[TaskCount]) -> TaskCount:
    done, total = 0, 0
    for each in counts:
        done, total = done + each.done, total + each.total
    return TaskCount(done, total)

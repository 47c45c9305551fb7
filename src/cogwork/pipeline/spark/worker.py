"""What the workers of Spark are spared.

Theory of operation. Spark's daemon has a worker collect garbage after each task, and after each
query that it has planned. That goes through all that the worker has ever loaded, pandas among it,
and takes longer than many a task: fifty milliseconds of a core. What is loaded stays until the
worker ends, so the collector may leave it out. It finds what a task leaves behind as before. And
a task goes through many batches of some mebibytes: the memory of those that it has passed on is
kept for those that come (`cogwork.io.heap`).
"""

from __future__ import annotations

import gc
import sys

from cogwork.io.heap import keep_freed

__all__ = ("keep_loaded",)

DAEMON = "pyspark.daemon"

_kept: list[bool] = []
"""Not empty once it is done: to ask the collector would take it a millisecond."""


def keep_loaded() -> None:
    """Have the garbage collector leave out what this worker has loaded; elsewhere nothing happens.

    To be called in each task, and where one plans, once what is needed is loaded.
    """
    if not _kept and _is_worker():
        _kept.append(True)
        gc.freeze()
        keep_freed()


def _is_worker() -> bool:
    """Return whether Spark's daemon has forked this process."""
    program = getattr(sys.modules.get("__main__"), "__spec__", None)
    return program is not None and program.name == DAEMON

"""What the workers of Spark are spared.

Theory of operation. Spark's daemon has a worker collect garbage after each task. That goes through
all that the worker has ever loaded, pandas among it, and takes longer than many a task: fifty
milliseconds of a core. What is loaded stays until the worker ends, so the collector may leave it
out. It finds what a task leaves behind as before.
"""

from __future__ import annotations

import gc

__all__ = ("keep_loaded",)


def keep_loaded() -> None:
    """Has the garbage collector leave out what this worker has loaded; elsewhere nothing happens.

    To be called in each task, once it has loaded what it needs.
    """
    from pyspark import TaskContext  # noqa: PLC0415 # workers have it already

    if TaskContext.get() is not None and not gc.get_freeze_count():
        gc.freeze()

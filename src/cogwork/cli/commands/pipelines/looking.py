"""What a command has Spark look at: a bar of tasks on a terminal, a plain line otherwise."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from cogwork.cli.commands.pipelines.bars import Bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from rich.console import Console

    from cogwork.pipeline.spark.task_counts import TaskCount

__all__ = ("looking",)

EVERY_S = 0.2


@contextmanager
def looking(
    session: SparkSession, *, screen: Console | None = None
) -> Iterator[Callable[[str], None]]:
    """Show how far Spark is, for the length of a `with`, which gives whom to tell what is next.

    Args:
        session: The session.
        screen: Where; stderr if not given.
    """
    with Bars(screen=screen) as bars:
        if not bars.is_drawn:
            yield lambda text: bars.warn(f"looking at {text}")
            return
        from cogwork.pipeline.spark.task_counts import task_counter

        drawn = _Drawn(bars, task_counter(session))
        try:
            yield drawn.tell
        finally:
            drawn.stop()


class _Drawn:
    """Draws from a thread: the command's own waits for Spark."""

    def __init__(self, bars: Bars, count: Callable[[], TaskCount]) -> None:
        self._bars = bars
        self._count = count
        self._text = ""
        self._before = count()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cogwork-looking", daemon=True)
        self._thread.start()

    def tell(self, text: str) -> None:
        self._before = self._count()
        self._text = text
        self._bars.advance(text, 0, 1)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_S):
            with suppress(Exception):  # Spark may just be ending; a bar is no reason to fail
                self._draw()

    def _draw(self) -> None:
        text, before, now = self._text, self._before, self._count()
        total = now.total - before.total
        if text and total > 0:
            self._bars.advance(text, min(total, now.done - before.done), total)

"""A JVM that is being started, and is not left behind where that is given up.

PySpark gives the JVM a pipe, at whose end it goes; but one that is not that far yet does not look,
and Ctrl-C does not reach it. Before that one there are scripts, and a JVM that tells them what to
start.
"""

from __future__ import annotations

from contextlib import contextmanager
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from cogwork.pipeline.spark.held_signals import held_back
from cogwork.pipeline.spark.process_tree import kill_tree, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("given_up_together",)


@contextmanager
def given_up_together() -> Iterator[None]:
    """Kill what PySpark has started where Ctrl-C or SIGTERM ends the start; an error does not."""
    from pyspark import java_gateway  # noqa: PLC0415  # with Spark

    started: list[Popen[Any]] = []

    class Noted(Popen[Any]):
        """A process that is known here, too."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            with held_back():
                super().__init__(*arguments, **options)
                started.append(self)

    names = vars(java_gateway)
    before, names["Popen"] = names["Popen"], Noted
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        with held_back():
            killed = [pid for process in started for pid in kill_tree(process)]
        wait_for_end(killed)
        raise
    finally:
        names["Popen"] = before

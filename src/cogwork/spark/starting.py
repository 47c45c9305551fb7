"""A JVM that is being started, and is not left behind where that is given up.

PySpark gives the JVM a pipe, at whose end it goes; but one that is not that far yet does not look,
and Ctrl-C does not reach it.
"""

from __future__ import annotations

from contextlib import contextmanager
from subprocess import Popen
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("given_up_together",)


@contextmanager
def given_up_together() -> Iterator[None]:
    """Kills what PySpark has started where Ctrl-C or SIGTERM ends the start; an error does not."""
    from pyspark import java_gateway  # noqa: PLC0415  # with Spark

    started: list[Popen[Any]] = []

    class Noted(Popen[Any]):
        """A process that is known here, too."""

        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # as they are
            super().__init__(*arguments, **options)
            started.append(self)

    names = vars(java_gateway)
    before, names["Popen"] = names["Popen"], Noted
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        names["Popen"] = before

"""How a user's own job ended, for programs: one JSON object, and all else on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

import click
import msgspec

from cogwork.cli.exit_codes import ExitCode, code_of, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.pipeline.spark.query_runs import QueryRuns

__all__ = ("JobReport", "told_as_json")

STDOUT, STDERR = 1, 2

STATUS_BITS = 0xFF
"""All that a program's status has: more than these of `sys.exit(300)` no shell gets to see."""


class JobReport:
    """What is gathered while a job runs.

    Attributes:
        runs: Its streaming queries; None where it did not come to that.
    """

    def __init__(self, file: str) -> None:
        """Begin now.

        Args:
            file: The job's.
        """
        self.runs: QueryRuns | None = None
        self._file = file
        self._began_s = time.monotonic()

    def row(self, error: BaseException | None) -> dict[str, object]:
        """Return what is told.

        Args:
            error: What ended it; None where it ended by itself.
        """
        queries = [] if self.runs is None else self.runs.seen
        return {
            "file": self._file,
            "exit_code": _exit_code(error),
            "error": _line(error),
            "seconds": round(time.monotonic() - self._began_s, 3),
            "queries": [msgspec.structs.asdict(each) for each in queries],
        }


@contextmanager
def told_as_json(file: str) -> Iterator[JobReport]:
    """Return how a job ended, for the length of a `with`; whatever it prints goes to stderr.

    Args:
        file: The job's.

    Yields:
        What to tell of it.
    """
    report, error = JobReport(file), None
    try:
        with _stdout_to_stderr():
            yield report
    except BaseException as raised:
        error = raised
        raise
    finally:
        click.echo(json.dumps(report.row(error), ensure_ascii=False))


def _line(error: BaseException | None) -> str | None:
    if error is None or isinstance(error, SystemExit):
        return None
    return "interrupted" if isinstance(error, KeyboardInterrupt) else line_of(error)


def _exit_code(error: BaseException | None) -> int:
    """Return what the command is going to end with."""
    if error is None:
        return ExitCode.OK
    if isinstance(error, SystemExit):
        return error.code & STATUS_BITS if isinstance(error.code, int) else ExitCode.ERROR
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    return code_of(error) or ExitCode.ERROR


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Have what this process writes go there, and the programs that it starts."""
    if sys.stdout is None:  # as after `>&-`
        yield
        return
    sys.stdout.flush()
    kept = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, STDOUT)
        os.close(kept)

"""Runs all tests, and those that failed once more: alone, one after the other, with their seeds.

    python tests/suite.py [arguments for pytest]

The suite passes if every test that failed beside others passes alone; such a test is listed as
flaky. What a property test, a simulation or the fuzzer finds is a fault however often it passes,
and is never run again; nor is anything where more tests failed than a busy machine explains.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

__all__ = (
    "FAILURES_VARIABLE",
    "Failure",
    "FailureRecorder",
    "failed_again",
    "failure_of",
    "verdict",
)

ROOT = Path(__file__).parents[1]

FAILURES_VARIABLE = "COGWORK_FAILURES"
"""Names the file that a run of pytest writes its failures to."""

RETRIES_MAX = 12
"""A change that breaks more tests than this has broken something."""

SEARCHING = ("tests/property/", "tests/sim/", "tests/fuzz/")
"""Folders of tests that try something else in each run."""

SEED = re.compile(r"(?:\b|_)seed[ =](\d+)", re.IGNORECASE)

TESTS_FAILED = 1
"""What pytest exits with if all tests ran and some failed."""


class Failure(NamedTuple):
    """A test that failed.

    Attributes:
        node_id: Pytest's name of it.
        seed: The seed that it printed, or None.
        is_fault: Whether the failure counts although the test passes in another run.
    """

    node_id: str
    seed: str | None
    is_fault: bool


class FailureRecorder:
    """A plug-in of pytest that writes down which tests failed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures: dict[str, Failure] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in how a part of a test ended."""
        if report.failed:
            self._failures[report.nodeid] = failure_of(report)

    def pytest_sessionfinish(self) -> None:
        """Write the failures down."""
        self._path.write_text(json.dumps(list(self._failures.values())))


def failure_of(report: pytest.TestReport) -> Failure:
    """Return what is remembered of a failed test.

    Args:
        report: Pytest's report of it.
    """
    found = SEED.findall("\n".join(text for _, text in report.sections))
    is_search = report.nodeid.startswith(SEARCHING) or "hypothesis" in report.keywords
    return Failure(report.nodeid, found[-1] if found else None, is_search)


def failed_again(failures: Sequence[Failure]) -> list[Failure]:
    """Run tests once more, each in a process of its own, and return those that failed again.

    Args:
        failures: The tests that failed, and the seeds to run them with.
    """
    return [failure for failure in failures if not _passes_alone(failure)]


def _passes_alone(failure: Failure) -> bool:
    print(f"\nrunning {failure.node_id} alone", flush=True)  # noqa: T201  # a program
    environment = {**os.environ, **({"COGWORK_SEED": failure.seed} if failure.seed else {})}
    environment.pop(FAILURES_VARIABLE, None)
    command = [sys.executable, "-m", "pytest", "--numprocesses", "0", failure.node_id]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def _run_all(arguments: Sequence[str]) -> tuple[int, list[Failure]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "failures.json"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=ROOT,
            env={**os.environ, FAILURES_VARIABLE: str(path)},
            check=False,
        )
        recorded = json.loads(path.read_text()) if path.exists() else []
    return done.returncode, [Failure(*each) for each in recorded]


def verdict(
    exit_code: int,
    failures: Sequence[Failure],
    run_again: Callable[[Sequence[Failure]], list[Failure]] = failed_again,
) -> tuple[int, list[str]]:
    """Decide how the suite ends.

    Args:
        exit_code: What pytest exited with.
        failures: The tests that failed.
        run_again: Runs tests once more and returns those that failed again.

    Returns:
        The exit code of the suite, and the lines that it prints.
    """
    if exit_code != TESTS_FAILED or not failures:
        return exit_code, []
    faults = [failure.node_id for failure in failures if failure.is_fault]
    if faults:
        return exit_code, ["not run again, as each failure is a fault:", *faults]
    if len(failures) > RETRIES_MAX:
        return exit_code, [f"{len(failures)} tests failed: too many to run them again"]
    again = run_again(failures)
    if again:
        return exit_code, ["failed again when run alone:", *(each.node_id for each in again)]
    flaky = (f"{each.node_id} (seed: {each.seed or 'none'})" for each in failures)
    return 0, ["flaky (failed beside others, passed alone):", *flaky]


def main() -> int:
    """Run the suite and return its exit code."""
    exit_code, lines = verdict(*_run_all(sys.argv[1:]))
    print("\n".join(lines))  # noqa: T201  # a program
    return exit_code


if __name__ == "__main__":
    sys.exit(main())

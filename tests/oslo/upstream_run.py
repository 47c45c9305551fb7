"""Runs some of upstream's tests, in a process of their own; a line of JSON tells of each.

Upstream multiplies its tests by `testscenarios`, which pytest knows nothing of, and patches the
whole process for eventlet, so neither pytest nor a test of ours may share it.
"""

from __future__ import annotations

import json
import sys
import traceback
import unittest
from types import TracebackType
from typing import TypeAlias

import testscenarios  # type: ignore[import-untyped]

Failure: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None]


class Result(unittest.TestResult):
    """Prints what becomes of each test."""

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802  # unittest's name
        super().startTest(test)
        self._say(test, "lost", "its process ended in the middle of it")

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._say(test, "passed", "")

    def addError(self, test: unittest.TestCase, err: Failure) -> None:  # noqa: N802
        self._say(test, "failed", self._text(err))

    def addFailure(self, test: unittest.TestCase, err: Failure) -> None:  # noqa: N802
        self._say(test, "failed", self._text(err))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._say(test, "skipped", reason)

    def _text(self, err: Failure) -> str:
        return "".join(traceback.format_exception(*err))

    def _say(self, test: unittest.TestCase, outcome: str, text: str) -> None:
        fact = {"test": test.id(), "outcome": outcome, "text": text}
        print(json.dumps(fact), file=sys.__stdout__, flush=True)


def main() -> None:
    """Runs the tests of a module, the first argument, whose names are among the others."""
    module, *names = sys.argv[1:]
    tests = testscenarios.generate_scenarios(unittest.defaultTestLoader.loadTestsFromName(module))
    chosen = [test for test in tests if test.id().removeprefix(f"{module}.") in names]
    unittest.TestSuite(chosen).run(Result())


if __name__ == "__main__":
    main()

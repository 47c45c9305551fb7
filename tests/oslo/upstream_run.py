"""Runs some of upstream's tests, in processes of their own; a line of JSON tells of each.

Upstream multiplies its tests by `testscenarios`, which pytest knows nothing of, and patches the
whole process for eventlet, so neither pytest nor a test of ours may share it.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import traceback
import unittest
from types import TracebackType
from typing import Any, TypeAlias

import testscenarios
from eventlet import hubs

Failure: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
)


class Result(unittest.TestResult):
    """Prints what becomes of each test."""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._say(test, "lost", "its process ended in the middle of it")

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._say(test, "passed", "")

    def addError(self, test: unittest.TestCase, err: Failure) -> None:
        self._say(test, "failed", self._text(err))

    def addFailure(self, test: unittest.TestCase, err: Failure) -> None:
        self._say(test, "failed", self._text(err))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._say(test, "skipped", reason)

    def _text(self, err: Failure) -> str:
        return "".join(traceback.format_exception(*err))

    def _say(self, test: unittest.TestCase, outcome: str, text: str) -> None:
        fact = {"test": test.id(), "outcome": outcome, "text": text}
        print(json.dumps(fact), file=sys.__stdout__, flush=True)


def main() -> None:
    """Run shares of tests, each in a process of its own, all at once.

    The argument is a list of objects in JSON: `url`, `module`, `tests` by their names in it, and
    `log`, whose `.out` and `.err` take what the process says. Everything is imported once, before
    the processes part: that takes longer than most tests.
    """
    shares: list[dict[str, Any]] = json.loads(sys.argv[1])
    for module in {share["module"] for share in shares}:
        importlib.import_module(module)
    parted = [pid for share in shares if (pid := _part(share))]
    for pid in parted:
        os.waitpid(pid, 0)


def _part(share: dict[str, Any]) -> int:
    """Fork a process that runs a share; return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        for number, suffix in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{share['log']}.{suffix}", os.O_WRONLY | os.O_CREAT, 0o600), number)
        os.environ["RPC_TRANSPORT_URL"] = os.environ["NOTIFY_TRANSPORT_URL"] = share["url"]
        random.seed()  # else all would begin with the same host
        hubs.use_hub()  # eventlet's, with descriptors of its own
        _run(share["module"], share["tests"])
        code = 0
    finally:
        os._exit(code)


def _run(module: str, names: list[str]) -> None:
    tests = testscenarios.generate_scenarios(unittest.defaultTestLoader.loadTestsFromName(module))
    chosen = [test for test in tests if test.id().removeprefix(f"{module}.") in names]
    unittest.TestSuite(chosen).run(Result())


if __name__ == "__main__":
    main()

"""How the suite judges tests that failed, and how it recognises them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from suite import RETRIES_MAX, Failure, failure_of, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SLOW = Failure("tests/system/test_slow.py::test_it", "7", is_fault=False)
WRONG = Failure("tests/property/test_rule.py::test_it", None, is_fault=True)

EXAMPLE = """
    from hypothesis import given, strategies as st

    def test_seeded():
        print("COGWORK_SEED=7")
        raise AssertionError

    @given(st.integers())
    def test_rule(number):
        raise AssertionError
"""


class Reports:
    """A plug-in that keeps what failed."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures.append(failure_of(report))


def never(failures: Sequence[Failure]) -> list[Failure]:
    raise AssertionError(failures)


def test_a_test_that_passes_alone_is_flaky_and_the_suite_passes() -> None:
    exit_code, lines = verdict(1, [SLOW], lambda _: [])
    assert exit_code == 0
    assert lines[1:] == ["tests/system/test_slow.py::test_it (seed: 7)"]
    assert "flaky" in lines[0]


def test_a_test_that_fails_again_fails_the_suite() -> None:
    assert verdict(1, [SLOW], list)[0] == 1


def test_a_search_that_found_something_is_never_run_again() -> None:
    exit_code, lines = verdict(1, [SLOW, WRONG], never)
    assert exit_code == 1
    assert WRONG.node_id in lines


def test_many_failures_are_not_run_again() -> None:
    assert verdict(1, [SLOW] * (RETRIES_MAX + 1), never)[0] == 1


@pytest.mark.parametrize("exit_code", [0, 2, 3, 4, 5])
def test_nothing_else_than_failed_tests_is_run_again(exit_code: int) -> None:
    assert verdict(exit_code, [SLOW], never) == (exit_code, [])


def test_a_failure_is_known_with_its_seed_and_as_a_property(tmp_path: Path) -> None:
    file = tmp_path / "test_example.py"
    file.write_text(textwrap.dedent(EXAMPLE))
    reports = Reports()
    arguments = [str(file), "-p", "no:cacheprovider", "-q", "--rootdir", str(tmp_path), "-n0"]
    assert pytest.main(arguments, plugins=[reports]) == 1
    assert [(each.seed, each.is_fault) for each in reports.failures] == [
        ("7", False),
        (None, True),
    ]

"""How idle the processors are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cogwork.io.idle import PATH, IdleClock, Idleness

if TYPE_CHECKING:
    from pathlib import Path


def test_what_the_kernel_counts_is_read_again_each_time(tmp_path: Path) -> None:
    path = tmp_path / "uptime"
    path.write_text("47709.05 80000.12\n")
    clock = IdleClock(str(path))
    assert clock.read() == Idleness(47709.05, 80000.12)
    path.write_text("47710.05 80001.50\n")
    assert clock.read() == Idleness(47710.05, 80001.5)
    clock.close()
    assert clock.read() is None


@pytest.mark.parametrize("text", ["", "47709.05\n", "one two\n"])
def test_a_file_that_says_something_else_says_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "uptime"
    path.write_text(text)
    clock = IdleClock(str(path))
    assert clock.read() is None
    clock.close()


def test_without_the_file_nobody_knows(tmp_path: Path) -> None:
    clock = IdleClock(str(tmp_path / "none"))
    assert clock.read() is None
    clock.close()


@pytest.mark.skipif(not os.path.exists(PATH), reason="the kernel is not Linux")
def test_no_more_is_idle_than_there_are_processors() -> None:
    clock = IdleClock()
    seen = clock.read()
    assert seen is not None
    assert 0 <= seen.idle_s <= seen.up_s * (os.cpu_count() or 1) + 1
    clock.close()

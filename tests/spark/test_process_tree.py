"""A process is killed with all that it has started, however the machine lists processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from cogwork.pipeline.spark import process_tree

if TYPE_CHECKING:
    from pathlib import Path

BREEDING = """
(sh -c 'echo $$; sleep 600; :' & echo $!; while :; do sleep 0.01; done) &
echo $!; while :; do sleep 0.01 & wait; done
"""
"""Has grandchildren, and starts new processes all the time."""


@pytest.fixture(params=["proc", "ps"])
def _listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "ps":
        if shutil.which("ps") is None:
            pytest.skip("there is no ps")
        monkeypatch.setattr(process_tree, "PROCESSES", process_tree.PROCESSES / "none")


@pytest.mark.usefixtures("_listing")
def test_nothing_of_a_tree_is_left() -> None:
    with subprocess.Popen(
        ["sh", "-c", BREEDING], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as root:
        assert root.stdout is not None
        of_tree = {root.pid, *(int(root.stdout.readline()) for _ in range(3))}
        killed = process_tree.kill_tree(root)
        assert set(killed) >= of_tree
        process_tree.wait_for_end(killed)
        assert root.stdout.read() == "", "nobody has the other end"
        with pytest.raises(ProcessLookupError):
            os.killpg(root.pid, 0)


def test_of_one_that_has_ended_nothing_is_killed() -> None:
    with subprocess.Popen(["true"]) as root:
        root.wait()
        assert process_tree.kill_tree(root) == []


def test_one_that_does_not_end_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "END_TIMEOUT_S", 0.05)
    before_s = time.monotonic()
    process_tree.wait_for_end([os.getpid()])
    assert time.monotonic() - before_s < 5


def test_without_a_listing_the_root_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process_tree, "PROCESSES", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with subprocess.Popen(["/bin/sleep", "600"]) as root:
        assert process_tree.kill_tree(root) == [root.pid]

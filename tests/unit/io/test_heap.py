"""What the allocator keeps: blocks that are freed and taken again cost no page faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

FAULTS = """
import resource
from cogwork.io.heap import keep_freed
keeps = {keeps} and keep_freed()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for size in (3, 3, 5):
    bytearray(b"x") * (size << 20)
before = faults()
for _ in range(50):
    blocks = [bytearray(b"x") * (5 << 20) for _ in range(3)]
    del blocks
print(int(keeps), faults() - before)
"""


def faults(*, keeps: bool) -> tuple[bool, int]:
    """Run a process that takes and frees memory; say what it kept, and its page faults."""
    command = [sys.executable, "-c", FAULTS.format(keeps=keeps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kept, count = done.stdout.split()
    return kept == "1", int(count)


def test_what_is_kept_is_not_faulted_in_again() -> None:
    kept, count = faults(keeps=True)
    if not kept:
        pytest.skip("the allocator is not glibc's")
    _, without = faults(keeps=False)
    assert count < without / 5

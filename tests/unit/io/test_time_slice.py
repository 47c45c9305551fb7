"""A thread's slices of the processor, as the kernel tells them back."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import pytest

from cogwork.io.time_slice import set_time_slice

CLASS_AND_NICE = "import os; print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))"


def run(*lines: str) -> list[str]:
    """Run lines in a process of their own, so that this one stays as it is."""
    program = "\n".join(("from cogwork.io.time_slice import set_time_slice", *lines))
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return found.stdout.decode().split()


def test_class_and_niceness_stay_as_they_are() -> None:
    lines = ("import os", "os.nice(3)", "print(set_time_slice(100))", CLASS_AND_NICE)
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + 3, 19)
    assert run(*lines) == ["True", str(os.sched_getscheduler(0)), str(niceness)]


def test_a_batch_process_stays_one() -> None:
    batch = "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))"
    lines = ("import os", batch, "set_time_slice(100)", CLASS_AND_NICE)
    assert run(*lines)[0] == str(os.SCHED_BATCH)


def test_slices_are_set_and_given_back() -> None:
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release < (6, 12) or os.uname().machine != "x86_64":
        pytest.skip("the kernel has no slices of one's own, or other numbers of calls")
    if os.sched_getscheduler(0) not in {os.SCHED_OTHER, os.SCHED_BATCH}:
        pytest.skip("threads of this class have none, and are left as they are")
    read = (
        "import ctypes, struct",
        "def told():",
        "    room = ctypes.create_string_buffer(56)",
        "    assert ctypes.CDLL(None).syscall(315, 0, room, 56, 0) == 0",
        f"    return struct.unpack({ATTRIBUTES!r}, room)[5]",
    )
    lines = (*read, "set_time_slice(100)", "print(told())", "set_time_slice(0)", "print(told())")
    short, usual = map(int, run(*lines))
    assert short == 100_000
    assert usual != short


ATTRIBUTES = "IIQiIQQQII"
assert struct.calcsize(ATTRIBUTES) == 56


def test_nonsense_is_refused_by_the_types() -> None:
    with pytest.raises(OverflowError):
        set_time_slice(-1)

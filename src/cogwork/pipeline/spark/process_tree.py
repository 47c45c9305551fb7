"""A process that was started here, and all that it has started in turn.

Theory of operation. Killing a process leaves its children, and nobody knows afterwards whose they
were. So each is stopped first, from the root down: what is stopped starts nothing more, and its
children, the dead ones among them, stay its own. Then they are killed from the leaves up, so that
no number is given to another process meanwhile. A process group of their own would be simpler, but
Ctrl-Z, a closed terminal and whoever kills this process's group would not reach them any more.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGSTOP
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("kill_tree", "wait_for_end")

PROCESSES = Path("/proc")
"""Linux has a directory for each process there; elsewhere `ps` is asked."""

END_TIMEOUT_S = 5.0
"""In a container whose first process does not collect the orphans, dead ones stay in the table."""


def kill_tree(process: subprocess.Popen[Any]) -> list[int]:
    """Kill a process and all its descendants, and wait for the process itself.

    Args:
        process: The root, a child of this process. Of one that has ended no descendant is known.

    Returns:
        The processes that were killed, which may take a moment to end.
    """
    if process.poll() is not None:
        return []
    found = newest = [process.pid]
    while newest:
        for pid in newest:
            _send(pid, SIGSTOP)
        parents = _parents()
        newest = [pid for pid in parents if parents[pid] in found and pid not in found]
        found = found + newest
    for pid in reversed(found):
        _send(pid, SIGKILL)
    process.wait()
    return found


def wait_for_end(pids: Iterable[int]) -> None:
    """Wait until processes that were killed are gone, for five seconds at most."""
    until_s = time.monotonic() + END_TIMEOUT_S
    left = list(pids)
    while (left := [pid for pid in left if not _is_gone(pid)]) and time.monotonic() < until_s:
        time.sleep(0.01)


def _send(pid: int, signum: int) -> None:
    with suppress(OSError):  # it has just ended, or runs as another user
        os.kill(pid, signum)


def _is_gone(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # orphans come to this process if it is a container's first
    try:
        os.kill(pid, 0)
    except OSError:
        return True
    return False


def _parents() -> dict[int, int]:
    """List all processes of the machine that can be seen, with their parents."""
    if (PROCESSES / "self" / "stat").exists():
        return _parents_of_linux()
    listing = ["ps", "-A", "-o", "pid=", "-o", "ppid="]
    try:
        told = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
    except OSError:
        return {}  # there is none: the root goes at least
    return {int(pid): int(parent) for pid, parent in map(str.split, told.splitlines())}


def _parents_of_linux() -> dict[int, int]:
    found = {}
    for entry in PROCESSES.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has just ended
                # proc(5): number, name in parentheses, state, parent; a name may have any octets.
                after_name = (entry / "stat").read_bytes().rpartition(b")")[2]
                found[int(entry.name)] = int(after_name.split()[1])
    return found

"""CPU seconds of the processes that share a piece of work: those that have ended count, too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        for thread in list(Path(f"/proc/{pid}/task").iterdir()):
            with suppress(FileNotFoundError, ProcessLookupError):  # it, too
                found += map(int, (thread / "children").read_text().split())
    return found


def own_cpu_s(pid: int) -> float:
    """Return what a process has taken itself."""
    return sum(_ticks(pid)[:2]) / TICKS_PER_S


def tree_cpu_s(pid: int) -> float:
    """Return what a process has taken, with its children, and theirs."""
    return sum(_ticks(pid)) / TICKS_PER_S + sum(map(tree_cpu_s, children(pid)))


def _ticks(pid: int) -> list[int]:
    """Return those of a process, and of its children that have ended: of each user and system."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile: its parent counts it
        return [0]
    return [int(each) for each in fields[11:15]]


def since(
    before: Mapping[str, float], after: Mapping[str, float], units: float
) -> dict[str, float]:
    """Return what each party has taken for each unit of the work."""
    return {name: round((after[name] - before[name]) / units, 3) for name in before}

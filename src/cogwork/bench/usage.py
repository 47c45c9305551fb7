"""What processes use, from /proc: CPU seconds and memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cogwork.bench.url import PeerError

__all__ = ("ProcessUsage",)

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_RESET_PEAK: Final = "5"


class ProcessUsage:
    """One process that is measured, or several whose figures are added up."""

    def __init__(self, *pids: int) -> None:
        """Look the processes up.

        Raises:
            PeerError: One is not there, or this machine has no /proc.
        """
        self._roots = [Path(f"/proc/{pid}") for pid in pids]
        for root in self._roots:
            if not (root / "stat").exists():
                raise PeerError(f"there is no process {root.name} to measure")

    def cpu_s(self) -> float:
        """Return the CPU seconds that they have used, in user and kernel mode."""
        return sum(_cpu_s(root) for root in self._roots)

    def rss_bytes(self) -> int:
        """Return their resident memory."""
        return sum(_status_bytes(root, "VmRSS") for root in self._roots)

    def peak_rss_bytes(self) -> int:
        """Return the sum of each one's largest resident memory since `reset_peak`."""
        return sum(_status_bytes(root, "VmHWM") for root in self._roots)

    def reset_peak(self) -> None:
        """Start the peak again from what is resident now."""
        for root in self._roots:
            (root / "clear_refs").write_text(_RESET_PEAK)


def _cpu_s(root: Path) -> float:
    fields = (root / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _status_bytes(root: Path, key: str) -> int:
    for line in (root / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    raise PeerError(f"{root}/status has no {key}")

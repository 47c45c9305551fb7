"""What a process uses, from /proc: CPU seconds and memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cogwork.cli.loadgen.url import PeerError

__all__ = ("ProcessUsage",)

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_RESET_PEAK: Final = "5"


class ProcessUsage:
    """A process that is measured."""

    def __init__(self, pid: int) -> None:
        """Looks the process up.

        Raises:
            PeerError: There is none, or this machine has no /proc.
        """
        self._root = Path(f"/proc/{pid}")
        if not (self._root / "stat").exists():
            raise PeerError(f"there is no process {pid} to measure")

    def cpu_s(self) -> float:
        """Returns the CPU seconds that it has used, in user and kernel mode."""
        fields = (self._root / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def rss_bytes(self) -> int:
        """Returns its resident memory."""
        return self._status_bytes("VmRSS")

    def peak_rss_bytes(self) -> int:
        """Returns its largest resident memory since `reset_peak`."""
        return self._status_bytes("VmHWM")

    def reset_peak(self) -> None:
        """Starts the peak again from what is resident now."""
        (self._root / "clear_refs").write_text(_RESET_PEAK)

    def _status_bytes(self, key: str) -> int:
        for line in (self._root / "status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == key:
                return int(value.split()[0]) * 1024
        raise PeerError(f"{self._root}/status has no {key}")

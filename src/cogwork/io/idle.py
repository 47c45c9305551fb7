"""How much of the machine's processors has had nothing to do.

Theory of operation. Linux tells how long it has run, and for how long all processors together have
been idle, in hundredths of a second. What was idle between two looks is the difference of the one
by that of the other.
"""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ("IdleClock", "Idleness")

PATH = "/proc/uptime"
READ_BYTES = 128


class Idleness(NamedTuple):
    """What there has been since the machine started.

    Attributes:
        up_s: How long it has run.
        idle_s: For how long processors were idle, of all the sum.
    """

    up_s: float
    idle_s: float


class IdleClock:
    """Looks at the processors of this machine."""

    def __init__(self, path: str = PATH) -> None:
        """Open it; where there is no such file, it knows nothing.

        Args:
            path: The kernel's file.
        """
        try:
            self._fd: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None

    def read(self) -> Idleness | None:
        """Return what there has been; None where the kernel does not tell."""
        if self._fd is None:
            return None
        try:
            up_s, idle_s = os.pread(self._fd, READ_BYTES, 0).split()[:2]
            return Idleness(float(up_s), float(idle_s))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Give the file back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

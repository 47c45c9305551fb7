"""The process's memory: how much it is, and giving back what a burst has left.

Theory of operation. What is freed after a burst (messages held for a slow subscriber, half
deliveries of clients that died) stays with the allocator, which cannot know that the quiet will
last. So once a second the process's size is compared with what it was when memory was last given
back: where it has grown, and little is held by now, the allocator is asked to give it back. A
process that has grown for good is asked once for each such step.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

__all__ = ("Memory", "resident_bytes")

GROWTH_BYTES = 8 * 1024 * 1024
"""Less than that is not worth a millisecond."""

QUIET_BYTES = 1024 * 1024
"""With more than that in the data plane, the burst is not over."""

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def resident_bytes() -> int:
    """Returns the memory that the process has in use; 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


class Memory:
    """Gives memory back to the system. Owned by the container."""

    def __init__(self) -> None:
        """Starts from the size that the process has now."""
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
        self._floor_bytes = resident_bytes()

    def sweep(self, held_bytes: int) -> bool:
        """Lets a second pass.

        Args:
            held_bytes: What the data plane holds now.

        Returns:
            Whether memory was given back.
        """
        if self._trim is None or held_bytes > QUIET_BYTES:
            return False
        if resident_bytes() - self._floor_bytes < GROWTH_BYTES:
            return False
        self._trim(0)
        self._floor_bytes = resident_bytes()
        return True

"""The process's memory: how much it is, and giving back what a burst has left.

Theory of operation. What is freed after a burst (messages held for a slow subscriber, half
deliveries of clients that died) stays with the allocator, which cannot know that the quiet will
last. So once a second the process's size is compared with what it was when memory was last given
back: where it has grown, and little is held by now, the allocator is asked to give it back. A
process that has grown for good is asked once for each such step. What is given back and taken again
at once costs a page fault for each page: where that is seen, it is waited longer and longer.

Between these times the allocator keeps what is free. By itself it gives the end of the heap back as
soon as that is twice the largest block of late, and a container with a stream has it go up and down
by some mebibytes many times a second.
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

PAUSE_MAX = 16
"""So many seconds are left out at most where what was given back is taken again at once."""

KEPT_BYTES = 64 * 1024 * 1024
"""So much may be free at the end of the heap before the allocator itself gives it back."""

BLOCK_BYTES = 32 * 1024 * 1024
"""Smaller blocks come from the heap: that is the largest that the allocator allows."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What `mallopt` calls them, in glibc."""

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
        libc = ctypes.CDLL(None)
        self._trim = getattr(libc, "malloc_trim", None)  # glibc has it, and then the other one
        if self._trim is not None:
            libc.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
            libc.mallopt(_MMAP_THRESHOLD, BLOCK_BYTES)
        self._floor_bytes = resident_bytes()
        self._left_out = 0
        self._pause = 0

    def sweep(self, held_bytes: int) -> bool:
        """Lets a second pass.

        Args:
            held_bytes: What the data plane holds now.

        Returns:
            Whether memory was given back.
        """
        if self._trim is None or held_bytes > QUIET_BYTES:
            return False
        if self._left_out < self._pause:
            self._left_out += 1
            return False
        self._left_out = 0
        if resident_bytes() - self._floor_bytes < GROWTH_BYTES:
            self._pause = 0
            return False
        self._pause = min(2 * self._pause + 1, PAUSE_MAX)
        self._trim(0)
        self._floor_bytes = resident_bytes()
        return True

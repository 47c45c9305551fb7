"""The process's memory: how much it is, and giving back what a burst has left.

Theory of operation. What is freed after a burst (messages held for a slow subscriber, half
deliveries of clients that died) stays with the allocator, which cannot know that the quiet will
last. So once a second the process's size is compared with what it was when memory was last given
back: where it has grown, and little is held by now, the allocator is asked to give it back. That
may have been in the middle of the burst, and what its clients leave behind is freed when their
leases end: so it is asked again a few times, later and later, though the process has grown no more.
A process that has grown for good is asked no further. What is given back and taken again at once
costs a page fault for each page: where that is seen, it is waited longer and longer.

Between these times the allocator keeps what is free (`cogwork.io.heap`): a container with a stream
has the end of the heap go up and down by some mebibytes many times a second.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from cogwork.io.heap import keep_freed

__all__ = ("Memory", "resident_bytes")

GROWTH_BYTES = 8 * 1024 * 1024
"""Less than that is not worth a millisecond."""

QUIET_BYTES = 1024 * 1024
"""With more than that in the data plane, the burst is not over."""

PAUSE_MAX = 16
"""So many seconds are left out at most where what was given back is taken again at once."""

AGAIN_S = (20, 80, 320)
"""So many seconds after a step of growth it is asked again."""

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def resident_bytes() -> int:
    """Return the memory that the process has in use; 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


class Memory:
    """Gives memory back to the system. Owned by the container."""

    def __init__(self) -> None:
        """Start from the size that the process has now."""
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
        keep_freed()
        self._floor_bytes = resident_bytes()
        self._left_out = 0
        self._pause = 0
        self._since_s = 0
        self._again_s: tuple[int, ...] = ()

    def give_back(self) -> None:
        """Give memory back now: much was freed, and there is little left."""
        if self._trim is not None:
            self._trim(0)

    def sweep(self, held_bytes: int) -> bool:
        """Let a second pass.

        Args:
            held_bytes: What the data plane holds now.

        Returns:
            Whether memory was given back.
        """
        if self._trim is None or held_bytes > QUIET_BYTES:
            return False
        self._since_s += 1
        if self._left_out < self._pause:
            self._left_out += 1
            return False
        self._left_out = 0
        if not self._is_due():
            return False
        self._trim(0)
        self._floor_bytes = resident_bytes()
        return True

    def _is_due(self) -> bool:
        """Return whether the process has grown, or it is time to ask once more; note which."""
        if resident_bytes() - self._floor_bytes >= GROWTH_BYTES:
            self._pause = min(2 * self._pause + 1, PAUSE_MAX)
            self._since_s, self._again_s = 0, AGAIN_S
            return True
        self._pause = 0
        if not self._again_s or self._since_s < self._again_s[0]:
            return False
        self._again_s = self._again_s[1:]
        return True

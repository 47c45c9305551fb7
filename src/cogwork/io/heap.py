"""What the allocator keeps of memory that was freed.

Theory of operation. glibc gives the end of the heap back as soon as that is twice the largest block
of late, and takes large blocks from the system one by one. A process through which batches of a few
mebibytes pass gets the same pages again and again, each with a fault, and zeroed. So it may say
that some of what is free stays. Other allocators do as they do.
"""

from __future__ import annotations

import ctypes

__all__ = ("keep_freed",)

KEPT_BYTES = 64 * 1024 * 1024
"""So much may be free at the end of the heap before it is given back."""

BLOCK_BYTES = 32 * 1024 * 1024
"""Smaller blocks come from the heap: that is the largest that the allocator allows."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What `mallopt` calls them."""


def keep_freed() -> bool:
    """Have this process keep what it frees, within limits; say whether the allocator is glibc's."""
    libc = ctypes.CDLL(None)
    if getattr(libc, "malloc_trim", None) is None:
        return False
    set_option = libc.mallopt
    return bool(set_option(_TRIM_THRESHOLD, KEPT_BYTES)) and bool(
        set_option(_MMAP_THRESHOLD, BLOCK_BYTES)
    )

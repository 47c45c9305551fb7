"""How long the processor is this thread's at a time, where others want it too.

Theory of operation. Linux has a thread that wakes up wait until the slice of the one that runs is
over, three milliseconds as a rule, whatever the two are worth (`nice`). Since 6.12 a thread may say
how long its own slices are to be: one with shorter slices is let in at once, as long as it does not
take more than its share. Nobody needs a privilege for that, and older kernels take no notice.

It is for threads that mostly wait, beside others that mostly work.
"""

import cython
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.io.time_slice import set_slice
from cython.cimports.libc.stdint import uint64_t

__all__ = ("SOURCE_HASH", "set_time_slice")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def set_time_slice(slice_us: int) -> bool:
    """Set the slices of this thread, and of those that it starts from now on.

    Threads of another class than the usual one are left as they are.

    Args:
        slice_us: From 100 to 100,000; 0 is the kernel's own choice.

    Returns:
        Whether the kernel knows of it.
    """
    return set_slice(cython.cast(uint64_t, slice_us) * 1000) == 0

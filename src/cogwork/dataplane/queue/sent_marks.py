"""Which attempts have gone out, for as long as the log may not say so yet.

Theory of operation. A queue that redelivers hands out items before the record of that is durable. A
process that is killed in between leaves a log without it, and its items would come again as if
nobody had had them. So each such attempt is marked in a file that is mapped into memory, too: the
kernel has what was stored there however the process ends, and it takes no system call. The marks
are a ring. One is written over once the log has the record that it stands for; until then new ones
are refused, and the deliveries wait for the log. What is marked twice, or was over by the log, is
told by the number of the attempt, which only rises.
"""

import struct

import cython

__all__ = ("SIZE_BYTES", "SOURCE_HASH", "SentMarks", "read_marks")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

_MARK = struct.Struct("=QIIQ")
_CHECK = 0x6B72_6F77_676F_6373

CHECK = cython.declare(uint64_t, _CHECK)

SIZE_BYTES = BLOCKS * BLOCK_ENTRIES * _MARK.size


class SentMarks:
    """The marks of a container's queues on disk."""

    def __init__(self, core: Core, memory: object):
        """Go on from whatever was marked before, which is written over from the start.

        The log is to have it by the open barrier's release.

        Args:
            core: Knows what is durable.
            memory: `SIZE_BYTES` octets of a file, writable.

        Raises:
            ValueError: It has another size.
        """
        block: cython.int
        if len(memory) != SIZE_BYTES:
            raise ValueError(f"{len(memory)} octets for marks; {SIZE_BYTES} are needed")
        self.core = core
        self.memory = memory
        self.marks = cython.cast(cython.pointer(SentMark), cython.address(self.memory[0]))
        for block in range(BLOCKS):
            self.block_barriers[block] = core.open_barrier

    def note(self, group, number, attempt):
        """Mark an attempt as sent; return whether there was room."""
        mark: cython.pointer(SentMark) = self.marks + self.at
        block: uint32_t
        if self.at % BLOCK_ENTRIES == 0:
            block = self.at // BLOCK_ENTRIES
            if self.core.released_barrier < self.block_barriers[block]:
                return False
        mark.number = number
        mark.attempt = attempt
        mark.group = group
        mark.check = CHECK ^ number ^ ((cython.cast(uint64_t, group) << 32) | attempt)
        self.at += 1
        if self.at % BLOCK_ENTRIES == 0:
            self.block_barriers[self.at // BLOCK_ENTRIES - 1] = self.core.open_barrier
            if self.at == BLOCKS * BLOCK_ENTRIES:
                self.at = 0
        return True


def read_marks(data: bytes) -> dict:
    """Read marks, as (number, attempt) by the queue's group.

    Args:
        data: What the file says; what is no mark in it is passed over.
    """
    found: dict = {}
    whole: cython.Py_ssize_t = len(data) - len(data) % _MARK.size
    for number, attempt, group, check in _MARK.iter_unpack(data[:whole]):
        if check == _CHECK ^ number ^ (group << 32 | attempt):
            found.setdefault(group, []).append((number, attempt))
    return found

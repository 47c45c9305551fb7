"""Columns that are filled value by value, and lent to Arrow as they are.

Theory of operation. A column of Arrow is two or three buffers: where each value ends (four octets,
as the machine has them), the octets of all values, and a bit for each that says whether it is
there. They grow here as values come. `Room` has the buffer protocol, so Arrow takes them without a
copy, and keeps them for as long as it needs them; whoever has filled them makes new ones then.
"""

import cython
from cython.cimports.cogwork.dataplane.octets import octets_of
from cython.cimports.cpython.buffer import PyBuffer_FillInfo
from cython.cimports.libc.stdlib import free, realloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SIZE_MIN = cython.declare(int64_t, 1024)
SIZE_MAX = cython.declare(int64_t, 0x7FFFFFFF)
"""What an end of four octets can say."""

HEX = cython.declare(bytes, b"0123456789abcdef")


class Room:
    """Octets that grow."""

    def __dealloc__(self):
        free(self.data)

    def __len__(self) -> int:
        return self.size

    def __getbuffer__(self, buffer: cython.pointer(Py_buffer), flags: cython.int):
        if self.data == cython.NULL:
            self.grow(1)
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)

    def grow(self, more):
        """Makes room for so much more."""
        capacity: int64_t = self.size + more
        grown: cython.pointer(uint8_t)
        if capacity > SIZE_MAX:
            raise OverflowError("a column of one batch has at most 2 GiB")
        capacity = max(capacity, 2 * self.capacity, SIZE_MIN)
        grown = cython.cast(cython.pointer(uint8_t), realloc(self.data, capacity))
        if grown == cython.NULL:
            raise MemoryError("no room for a column")
        self.data = grown
        self.capacity = capacity
        return 0


class Presence:
    """Which values are there."""

    def __init__(self):
        self.bits = Room()


class Numbers:
    """Whole numbers."""

    def __init__(self):
        self.data = Room()
        self.presence = Presence()


class Column:
    """Strings or binaries."""

    def __init__(self):
        self.data = Room()
        self.ends = Room()
        self.presence = Presence()
        put_end(self.ends, 0)

    def put_hex(self, p, size):
        """Adds octets in hexadecimal."""
        digits: octets = octets_of(HEX)
        out: cython.pointer(uint8_t)
        at: int64_t
        reserve(self.data, 2 * size)
        out = self.data.data + self.data.size
        for at in range(size):
            out[2 * at] = digits[p[at] >> 4]
            out[2 * at + 1] = digits[p[at] & 15]
        self.data.size += 2 * size
        return end_value(self, True)

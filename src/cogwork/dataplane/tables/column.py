"""Columns that are filled value by value, and shared with Arrow as they are.

Theory of operation. A column of Arrow is two or three buffers: where each value ends (four octets,
as the machine has them), the octets of all values, and a bit for each that says whether it is
there. They grow here as values come, in C. `Room` has the buffer protocol, so Arrow takes them
without a copy, and keeps them for as long as it needs them; whoever has filled them makes new ones
then.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cpython.buffer import PyBuffer_FillInfo
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SIZE_MIN = cython.declare(int64_t, 1024)
SIZE_MAX = cython.declare(int64_t, 0x7FFFFFFF)
"""What an end of four octets can say."""

HEX = cython.declare(bytes, b"0123456789abcdef")


def grow(growing, more):
    """Make room for so much more."""
    capacity: int64_t = growing.size + more
    grown: cython.pointer(uint8_t)
    if capacity > SIZE_MAX:
        raise OverflowError("a column of one batch has at most 2 GiB")
    capacity = max(capacity, 2 * growing.capacity, SIZE_MIN)
    grown = cython.cast(cython.pointer(uint8_t), realloc(growing.data, capacity))
    if grown == cython.NULL:
        raise MemoryError("no room for a column")
    growing.data = grown
    growing.capacity = capacity
    return 0


def write_bit(values, is_there):
    """Write whether the next value is there, and those before it, if they are not written."""
    bit: cython.int = values.count & 7
    write_bits(values)
    values.is_mixed = True
    if bit == 0:
        reserve(cython.address(values.bits), 1)
        values.bits.data[values.bits.size] = 0
        values.bits.size += 1
    if is_there:
        values.bits.data[values.bits.size - 1] |= 1 << bit
    return 0


@cython.cfunc
@cython.exceptval(-1)
def write_bits(values: cython.pointer(Values)) -> cython.int:
    """Write the bits of values that all are there, or of which none is."""
    size: int64_t = (values.count + 7) >> 3
    if values.is_mixed or values.bits.size == size:
        return 0
    reserve(cython.address(values.bits), size - values.bits.size)
    memset(values.bits.data, 0 if values.nulls else 0xFF, size)
    if values.count & 7 and not values.nulls:
        values.bits.data[size - 1] = cython.cast(uint8_t, (1 << (values.count & 7)) - 1)
    values.bits.size = size
    return 0


def write_ends(values):
    """Write where the first value begins, and where nulls end of which nothing is written yet."""
    size: int64_t = 4 * (values.count + 1)
    if values.ends.size < size:
        reserve(cython.address(values.ends), size - values.ends.size)
        memset(values.ends.data + values.ends.size, 0, size - values.ends.size)
        values.ends.size = size
    return 0


def put_hex(values, p, size):
    """Add octets in hexadecimal."""
    digits: octets = octets_of(HEX)
    out: cython.pointer(uint8_t)
    at: int64_t
    reserve(cython.address(values.data), 2 * size)
    out = values.data.data + values.data.size
    for at in range(size):
        out[2 * at] = digits[p[at] >> 4]
        out[2 * at + 1] = digits[p[at] & 15]
    values.data.size += 2 * size
    return end_value(values)


class Column:
    """Strings, binaries, or whole numbers; the pairs of maps have nothing but their ends.

    Attributes:
        data: The octets of all values.
        ends: Where each of them ends.
        presence: Which of them are there.
    """

    def __dealloc__(self):
        free(self.values.data.data)
        free(self.values.ends.data)
        free(self.values.bits.data)

    @property
    def data(self) -> Room:
        return room_of(self, cython.address(self.values.data))

    @property
    def ends(self) -> Room:
        if self.values.nulls == self.values.count:
            write_ends(cython.address(self.values))
        return room_of(self, cython.address(self.values.ends))

    @property
    def presence(self) -> Presence:
        presence: Presence = Presence.__new__(Presence)
        presence.column = self
        return presence


class Presence:
    """Which values of a column are there.

    Attributes:
        bits: A bit for each.
        count: How many values there are.
        nulls: How many of them are not there.
    """

    @property
    def bits(self) -> Room:
        write_bits(cython.address(self.column.values))
        return room_of(self.column, cython.address(self.column.values.bits))

    @property
    def count(self) -> int:
        return self.column.values.count

    @property
    def nulls(self) -> int:
        return self.column.values.nulls


@cython.cfunc
def room_of(column: Column, growing: cython.pointer(Growing)) -> Room:
    room: Room = Room.__new__(Room)
    room.column = column
    room.growing = growing
    return room


class Room:
    """One buffer of a column."""

    def __len__(self) -> int:
        return self.growing.size

    def __getbuffer__(self, buffer: cython.pointer(Py_buffer), flags: cython.int):
        if self.growing.data == cython.NULL:
            grow(self.growing, 1)
        PyBuffer_FillInfo(buffer, self, self.growing.data, self.growing.size, 1, flags)

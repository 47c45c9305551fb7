cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cogwork.dataplane.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef extern from "Python.h":
    char* PyOS_double_to_string(double number, char code, int precision, int flags, int* kind) except NULL
    enum:
        Py_DTSF_ADD_DOT_0

# Room for one value's text, but for those that are copied.
cdef enum:
    TEXT_SIZE_MAX = 64

# Octets that grow; whoever they are lent to finds them where they are.
@cython.final
cdef class Room:
    cdef uint8_t* data
    cdef readonly int64_t size
    cdef int64_t capacity
    cdef int grow(self, int64_t more) except -1

cdef inline int reserve(Room room, int64_t more) except -1:
    if room.size + more > room.capacity:
        return room.grow(more)
    return 0

# Adds where a value ends.
cdef inline int put_end(Room ends, int64_t end) except -1:
    reserve(ends, 4)
    (<int32_t*>(ends.data + ends.size))[0] = <int32_t>end
    ends.size += 4
    return 0

# Which values there are, one bit each.
@cython.final
cdef class Presence:
    cdef readonly Room bits
    cdef readonly int64_t count
    cdef readonly int64_t nulls

# Takes down one more.
cdef inline int note(Presence presence, bint is_there) except -1:
    cdef Room bits = presence.bits
    cdef int bit = presence.count & 7
    if bit == 0:
        reserve(bits, 1)
        bits.data[bits.size] = 0
        bits.size += 1
    if is_there:
        bits.data[bits.size - 1] |= 1 << bit
    else:
        presence.nulls += 1
    presence.count += 1
    return 0

# Whole numbers of eight octets.
@cython.final
cdef class Numbers:
    cdef readonly Room data
    cdef readonly Presence presence

# Adds a number that is there; its column has no others.
cdef inline int put_number(Numbers column, int64_t number) except -1:
    cdef Room data = column.data
    reserve(data, 8)
    (<int64_t*>(data.data + data.size))[0] = number
    data.size += 8
    return 0

# Strings or binaries, one after the other.
@cython.final
cdef class Column:
    cdef readonly Room data
    cdef readonly Room ends
    cdef readonly Presence presence
    cdef int put_hex(self, octets p, int64_t size) except -1

# Says that a value ends where the octets end.
cdef inline int end_value(Column column, bint is_there) except -1:
    put_end(column.ends, column.data.size)
    return note(column.presence, is_there)

# Adds octets to the value that is being made.
cdef inline int put_part(Column column, octets p, int64_t size) except -1:
    cdef Room data = column.data
    if size > 0:
        reserve(data, size)
        memcpy(data.data + data.size, p, size)
        data.size += size
    return 0

# Adds a value.
cdef inline int put(Column column, octets p, int64_t size) except -1:
    put_part(column, p, size)
    return end_value(column, True)

# Adds a value that is none.
cdef inline int put_null(Column column) except -1:
    return end_value(column, False)

# Makes room for about as much as another column has taken.
cdef inline int expect(Column column, Column before) except -1:
    if column is not None and before is not None:
        reserve(column.data, before.data.size + (before.data.size >> 4))
    return 0

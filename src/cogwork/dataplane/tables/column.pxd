cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef extern from "Python.h":
    char* PyOS_double_to_string(double number, char code, int precision, int flags, int* kind) except NULL
    enum:
        Py_DTSF_ADD_DOT_0

# Room for one value's text, but for those that are copied.
cdef enum:
    TEXT_SIZE_MAX = 64

# Octets that grow.
cdef struct Growing:
    uint8_t* data
    int64_t size
    int64_t capacity

cdef int grow(Growing* growing, int64_t more) except -1

cdef inline int reserve(Growing* growing, int64_t more) except -1:
    if growing.size + more > growing.capacity:
        return grow(growing, more)
    return 0

# The values of a column: their octets or numbers, where each ends, and which are there. Where all
# are there, or none is, that is only counted; the bits, and the ends of nulls, are written once
# they differ, or once somebody looks.
cdef struct Values:
    Growing data
    Growing ends
    Growing bits
    int64_t count
    int64_t nulls
    bint is_mixed

cdef int write_bit(Values* values, bint is_there) except -1
cdef int write_ends(Values* values) except -1
cdef int put_hex(Values* values, octets p, int64_t size) except -1

# Adds where a value ends.
cdef inline int put_end(Values* values, int64_t end) except -1:
    reserve(&values.ends, 4)
    (<int32_t*>(values.ends.data + values.ends.size))[0] = <int32_t>end
    values.ends.size += 4
    return 0

# Takes down whether one more is there.
cdef inline int note(Values* values, bint is_there) except -1:
    if values.is_mixed or values.nulls != (0 if is_there else values.count):
        write_bit(values, is_there)
    values.nulls += not is_there
    values.count += 1
    return 0

# Adds a number of eight octets; whether it is there is noted besides.
cdef inline int put_number(Values* values, int64_t number) except -1:
    reserve(&values.data, 8)
    (<int64_t*>(values.data.data + values.data.size))[0] = number
    values.data.size += 8
    return 0

# Says that a value that is there ends where the octets end.
cdef inline int end_value(Values* values) except -1:
    if values.nulls == values.count:
        write_ends(values)
    put_end(values, values.data.size)
    return note(values, True)

# Copies a few octets without a call.
cdef inline void copy(uint8_t* to, octets p, int64_t size) noexcept nogil:
    if size > 16:
        memcpy(to, p, size)
    elif size >= 8:
        memcpy(to, p, 8)
        memcpy(to + size - 8, p + size - 8, 8)
    elif size >= 4:
        memcpy(to, p, 4)
        memcpy(to + size - 4, p + size - 4, 4)
    elif size > 0:
        to[0] = p[0]
        to[size >> 1] = p[size >> 1]
        to[size - 1] = p[size - 1]

# Adds octets to the value that is being made.
cdef inline int put_part(Values* values, octets p, int64_t size) except -1:
    if size > 0:
        reserve(&values.data, size)
        copy(values.data.data + values.data.size, p, size)
        values.data.size += size
    return 0

# Adds a value.
cdef inline int put(Values* values, octets p, int64_t size) except -1:
    put_part(values, p, size)
    return end_value(values)

# Adds a value that is none.
cdef inline int put_null(Values* values) except -1:
    if values.nulls != values.count:
        put_end(values, values.data.size)
    return note(values, False)

# A column, as long as its buffers are shared with somebody.
@cython.final
cdef class Column:
    cdef Values values

# One buffer of a column; whoever it is shared with finds the octets where they are.
@cython.final
cdef class Room:
    cdef Column column
    cdef Growing* growing

# Which values of a column there are, one bit each.
@cython.final
cdef class Presence:
    cdef Column column

# Makes room for about as much as another column has taken.
cdef inline int expect(Column column, Column before) except -1:
    if column is not None and before is not None:
        reserve(&column.values.data, before.values.data.size + (before.values.data.size >> 4))
        reserve(&column.values.ends, before.values.ends.size)
    return 0

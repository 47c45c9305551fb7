cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

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

# Which values there are, one bit each.
@cython.final
cdef class Presence:
    cdef readonly Room bits
    cdef readonly int64_t count
    cdef readonly int64_t nulls
    cdef int note(self, bint is_there) except -1

# Whole numbers of eight octets.
@cython.final
cdef class Numbers:
    cdef readonly Room data
    cdef readonly Presence presence
    cdef int put(self, int64_t number, bint is_there) except -1

# Strings or binaries, one after the other.
@cython.final
cdef class Column:
    cdef readonly Room data
    cdef readonly Room ends
    cdef readonly Presence presence
    cdef int start_value(self, int64_t size) except -1
    cdef int end_value(self, bint is_there) except -1
    cdef int put(self, octets p, int64_t size) except -1
    cdef int put_null(self) except -1
    cdef int put_part(self, octets p, int64_t size) except -1
    cdef int put_hex(self, octets p, int64_t size) except -1

cdef int put_end(Room ends, int64_t end) except -1

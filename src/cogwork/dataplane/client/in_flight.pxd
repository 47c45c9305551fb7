cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# The tokens of something that was sent, and how many of its messages have no outcome yet.
cdef struct Entry:
    uint64_t first
    uint32_t size
    uint32_t waiting


@cython.final
cdef class DispatchesInFlight:
    cdef readonly int64_t count
    cdef list dispatches
    cdef Entry* entries
    cdef Py_ssize_t start
    cdef Py_ssize_t end
    cdef Py_ssize_t capacity
    cdef int add(self, object dispatch, uint64_t first, uint32_t size, uint32_t count) except -1
    cdef Py_ssize_t find(self, uint64_t token) noexcept
    cdef object remove(self, Py_ssize_t index, uint32_t count)
    cdef list clear(self)
    cdef Py_ssize_t place_of(self, uint64_t token) noexcept
    cdef Py_ssize_t insert(self, Py_ssize_t index, uint64_t first, uint32_t size) except -1
    cdef int compact(self) except -1
    cdef int grow(self) except -1

    # How many tokens are left from one on of what `find` has found.
    cdef inline uint32_t left(self, Py_ssize_t index, uint64_t token) noexcept:
        return <uint32_t>(self.entries[index].first + self.entries[index].size - token)

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from cogwork.dataplane.message.messages cimport Message
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.message.sections cimport Layout
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What says that a message has no such annotation.
cdef enum:
    ABSENT_NUMBER = -1

cdef int64_t own_number(octets data, const Layout* layout, const char* key, int64_t size) noexcept
cdef int64_t offset_after(octets data, int64_t size) noexcept


cdef class Record(Message):
    cdef int64_t number(self, const char* key, int64_t size) noexcept


# Messages as they arrived, one after the other in one piece of memory.
@cython.final
cdef class RecordBuffer:
    cdef uint8_t* data
    cdef int64_t size
    cdef int64_t capacity
    cdef int64_t* ends
    cdef Py_ssize_t count
    cdef Py_ssize_t count_max
    cdef bint is_shared
    # Messages that were joined of several frames, by their places: they are kept as they are.
    cdef dict joined
    cdef int grow(self, int64_t size) except -1
    cdef int drop(self, Py_ssize_t count) except -1
    cdef int add_joined(self, bytes message) except -1
    cdef int add_from(self, RecordBuffer other, Py_ssize_t index) except -1
    cdef int64_t offset_after_last(self) except -2
    cdef Record record(self, Py_ssize_t index)

    cdef inline int64_t start_of(self, Py_ssize_t index) noexcept:
        return self.ends[index - 1] if index else 0

    cdef inline int add(self, octets data, int64_t size) except -1:
        if self.size + size > self.capacity or self.count == self.count_max:
            self.grow(size)
        memcpy(self.data + self.size, data, size)
        self.size += size
        self.ends[self.count] = self.size
        self.count += 1
        return 0


@cython.final
cdef class Records:
    cdef RecordBuffer buffer
    cdef Py_ssize_t start
    cdef Py_ssize_t step
    cdef Py_ssize_t length

    cdef inline Py_ssize_t place(self, Py_ssize_t index) noexcept:
        return self.start + index * self.step


cdef Records records_of(RecordBuffer buffer, Py_ssize_t start, Py_ssize_t step, Py_ssize_t length)

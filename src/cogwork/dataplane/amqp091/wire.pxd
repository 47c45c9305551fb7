cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.duplex cimport Duplex
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class BasicWire(Duplex):
    # Whether the owner has been told that too much of what came by it waits.
    cdef bint is_backlogged
    cdef int64_t whole_frames(self, octets data, int64_t size, uint32_t* count) noexcept
    cdef bint has_backlog(self) noexcept
    cdef int tell_backlog(self) except -1

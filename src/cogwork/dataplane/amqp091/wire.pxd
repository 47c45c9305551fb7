cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.duplex cimport HANDED_ON_MAX, Duplex
from cogwork.dataplane.transport.ends cimport ReceivingEnd
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


# What a channel answers to frames: Python deals with them; they are to come again, with more.
cdef enum:
    INDIRECT = 0
    INCOMPLETE = -1

# Where a channel stands whose content Python puts together.
cdef enum:
    NO_CONTENT = 0
    HEADER_NEXT = 1
    BODY_NEXT = 2


cdef class DirectChannel(ReceivingEnd):
    cdef public bint is_direct
    cdef int content
    cdef uint64_t body_left
    cdef int64_t take_frames(self, octets data, int64_t size) except? -2
    cdef void follow(self, octets frame) noexcept


@cython.final
cdef class BasicWire(Duplex):
    cdef list channels
    # Whether any of its channels takes frames itself.
    cdef bint has_channels
    # Whether the owner has been told that too much of what came by it waits.
    cdef bint is_backlogged
    cdef DirectChannel channel_of(self, uint32_t number)
    cdef int map(self, uint32_t number, DirectChannel channel) except -1
    cdef bint takes(self, octets frame) except -1
    cdef int64_t scan_direct(self, octets data, int64_t size) except? -2
    cdef int follow(self, octets frame) except -1
    cdef int64_t give(self, octets data, int64_t size, uint32_t count) except? -2
    cdef bint has_backlog(self) noexcept
    cdef int tell_backlog(self) except -1

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.output cimport Output
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


cdef enum:
    # So many messages are handed on before it is looked how long that took.
    HANDED_ON_MAX = 8


cdef class Duplex(Output):
    cdef readonly uint32_t origin
    cdef uint32_t read_size
    cdef readonly uint32_t max_frame_in
    cdef readonly bint paused
    # Its socket has failed, and what was read before waits for later turns.
    cdef bint is_lost
    # Who its peer is, where sources share what the event loop has time for.
    cdef public str source
    cdef readonly double last_received_s
    # What is kept of deliveries that came by it, whole or not.
    cdef readonly int64_t held_bytes
    cdef uint8_t* tail
    cdef uint32_t tail_size
    cdef uint32_t tail_capacity
    cdef readonly uint64_t bytes_in
    cdef readonly uint64_t frames_in
    cpdef object on_readable(self)
    cdef int64_t scan(self, octets data, int64_t size) except -1
    cdef uint64_t first_frame_bytes(self, octets data, uint64_t size) noexcept
    cdef bint _has_to_wait(self) except -1
    cdef bint _may_pause(self) noexcept
    cdef int keep_tail(self, octets data, uint64_t size) except -1
    cdef int consume(self, uint8_t* data, int64_t size) except -1
    cdef int _adapt_read_size(self, uint64_t sends, uint64_t sent_bytes) except -1
    cdef int pause_if_late(self, double start_s) except -1
    cdef int pause_if_long(self) except -1
    cdef int _consume_tail(self, uint8_t* buffer) except -1

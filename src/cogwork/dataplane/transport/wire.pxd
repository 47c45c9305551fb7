cimport cython
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.due cimport Due
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.duplex cimport HANDED_ON_MAX, Duplex
from cogwork.dataplane.transport.scan cimport TransferFields
from cogwork.dataplane.transport.shipment cimport RUN_MAX, Piece
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef class Wire


cdef class Channel(Due):
    cdef readonly Core core
    cdef readonly Wire wire
    cdef readonly uint16_t local_channel
    cdef readonly bint ended
    cdef int mark_dirty(self) except -1
    cdef uint32_t run_limit(self, uint32_t handle, uint32_t size, uint64_t* message_size_max) except? 0xffffffff
    cdef uint32_t route_run(self, uint32_t handle, Piece* pieces, uint32_t count, bint settled) except? 0xffffffff
    cdef int on_transfer(self, octets p, int64_t at, int64_t end) except -1
    cdef int on_flow(self, octets p, int64_t at, int64_t end) except -1
    cdef int on_disposition(self, octets p, int64_t at, int64_t end) except -1
    cdef int64_t pass_on(self, octets data, int64_t size) except -1


@cython.final
cdef class Wire(Duplex):
    cdef bint framing
    cdef public bint relays
    cdef readonly list sessions
    cdef int64_t scan_run(self, octets data, int64_t size) except -1
    cdef int64_t _pass_on(self, octets data, int64_t size) except -1
    cdef int scan_header(self, octets data) except -1
    cdef int dispatch(self, octets frame, uint32_t size) except -1
    cdef Channel session_of(self, uint32_t channel)
    cdef int _give_to_owner(self, octets frame, int64_t at, uint32_t size, uint32_t channel) except -1

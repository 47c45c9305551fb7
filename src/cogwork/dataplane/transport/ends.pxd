from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.transport.scan cimport FlowFields, TransferFields
from cogwork.dataplane.transport.shipment cimport Piece
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


cdef class LinkEnd(Terminus):
    cdef readonly uint32_t handle
    cdef readonly uint32_t credit
    cdef readonly uint32_t delivery_count
    cdef readonly uint32_t unsettled
    cdef readonly uint64_t deliveries
    cdef readonly bint detached
    cdef readonly bint drain
    cdef public object owner
    cdef int on_flow(self, FlowFields* f) except -1
    cdef void promise(self) noexcept
    cdef uint8_t* put_available(self, uint8_t* p) noexcept


cdef class ReceivingEnd(LinkEnd):
    cdef readonly uint32_t charged
    cdef bint flow_due
    cdef int64_t held_bytes
    cdef bint discarding
    cdef Delivery* current
    cdef list current_outlets
    cdef int on_transfer(self, TransferFields* t) except -1
    cdef uint32_t run_limit(self, uint32_t size, uint64_t* message_size_max) except? 0xffffffff
    cdef uint32_t route_run(self, Piece* pieces, uint32_t count, bint settled) except? 0xffffffff
    cdef int top_up(self) except -1
    cdef int hold(self, int64_t size_bytes, bint is_assembled) except -1
    cdef int let_go(self, int64_t size_bytes, bint is_assembled) except -1
    cdef bint may_send(self) noexcept

from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.addresses.holding cimport HoldingEntry
from cogwork.dataplane.addresses.lost_branch cimport LostBranch
from cogwork.dataplane.transport.outgoing cimport OutgoingLink
from cogwork.dataplane.transport.shipment cimport RUN_MAX, Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


cdef enum:
    # Some outlet does not take every message.
    PICKY = 1
    # Some outlet leads to another container or a node.
    LEADS_ON = 2


cdef class CopyingEntry(HoldingEntry):
    cdef readonly uint64_t delivered
    cdef public bint awaits_settlement
    cdef int multicast(self, Shipment* s, list outlets) except -1
    cdef int multicast_late(self, Shipment* s, list late) except -1
    cdef int multicast_run(self, Shipment* s, Piece* pieces, uint32_t count, list outlets) except -1
    cdef Delivery* _copy_of(self, Shipment* s, Terminus outlet) except NULL
    cdef int _give_run(self, Shipment* s, Piece* pieces, Delivery** late, Terminus outlet, uint32_t count) except -1
    cdef int _accept_run(self, uint32_t source_index, uint32_t source_generation, Piece* pieces, uint32_t count) except -1
    cdef int _traits_of(self, list outlets) except -1
    cdef uint32_t _await(self, Shipment* shipment, Shipment* s, uint32_t record, bint branch) except? 0xffffffff
    cdef int _set_source(self, Shipment* s, Terminus outlet) except -1
    cdef bint _is_awaited(self, Terminus outlet) except -1
    cdef int _run_late(self, Shipment* s, Piece* pieces, Delivery** late, Terminus outlet, uint32_t first, uint32_t count) except -1


# Says whether an outlet leads to another container.
cdef inline bint is_branch(Terminus outlet) noexcept:
    if type(outlet) is OutgoingLink:
        return (<OutgoingLink>outlet).is_branch
    return type(outlet) is LostBranch

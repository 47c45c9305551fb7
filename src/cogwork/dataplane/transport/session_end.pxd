cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.transport.ends cimport LinkEnd
from cogwork.dataplane.transport.scan cimport DispositionFields
from cogwork.dataplane.transport.settlements cimport Settlements
from cogwork.dataplane.transport.shipment cimport Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.transport.unsettled cimport Sent, UnsettledRing


@cython.final
cdef class Session(Settlements):
    cdef public object owner
    cdef readonly uint32_t next_incoming_id
    cdef readonly uint32_t incoming_window
    cdef uint32_t incoming_window_max
    cdef readonly uint32_t next_outgoing_id
    cdef readonly int64_t remote_window
    cdef uint32_t next_delivery_id
    cdef readonly int64_t held_bytes
    cdef readonly list links
    cdef readonly UnsettledRing sent
    cdef bint flow_due
    cdef bint is_starved
    cdef list links_due
    # The default outcomes that sources name, by the index of their links; None while none does.
    cdef dict defaults
    # The last flow of each link whose attach has no answer yet, by handle; None while there is none.
    cdef dict early_flows
    cdef int replenish(self) except -1
    cdef bint holds_too_much(self) noexcept
    cdef uint32_t _window(self) noexcept
    cdef int settle_sent(self, DispositionFields* d) except -1
    cdef int settle_range(self, uint32_t first, uint32_t last, Verdict* verdict) except -1
    cdef int settle_each(self, uint32_t first, uint32_t last, Verdict* verdict) except -1
    cdef int settle_one(self, Sent* sent, Verdict* verdict) except -1
    cdef int settle_by_default(self, uint32_t first, uint32_t last) except -1
    cdef int settle_spilled(self, uint32_t first, uint32_t last, Verdict* verdict) except -1
    cdef int write_flow(self, LinkEnd link, bint echo) except -1
    cdef int write_due(self) except -1

    # Returns the link's compiled end, None, or whatever else was mapped to the handle.
    cdef inline object link_of(self, uint32_t handle):
        if handle >= <uint32_t>len(self.links):
            return None
        return <object>self.links[handle]

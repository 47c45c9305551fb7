cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.addresses.copying cimport CopyingEntry
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.transport.ends cimport ReceivingEnd
from cogwork.dataplane.addresses.interest cimport Interest
from cogwork.dataplane.transport.shipment cimport Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


@cython.final
cdef class AddressEntry(CopyingEntry):
    cdef public bint assembles
    cdef readonly list outlets
    cdef readonly list sources
    cdef uint32_t turn
    # How many outlets have been asked for what is held first, in turns before this one.
    cdef uint32_t scanned
    cdef bint offered
    cdef bint rationed
    cdef uint32_t source_turn
    cdef bint serves_near_first
    cdef Interest interest
    cdef bytes subject
    cdef public AddressEntry near
    cdef public bint is_used
    cdef public object expand
    cdef public object stored
    cdef uint64_t version
    cdef int route(self, Shipment* s) except -1
    cdef int anycast(self, Shipment* s) except -1
    cdef int anycast_run(self, Shipment* s, Piece* pieces, uint32_t count) except -1
    cdef Terminus pick(self, Shipment* s)
    cdef Terminus _pick_closest(self, Shipment* s, uint32_t count)
    cdef Terminus _pick_least(self, Shipment* s, uint32_t count)
    cdef Terminus _pick_later(self, uint32_t turn, uint32_t step)
    cdef uint32_t _nearest(self) except? 0xfffffffe
    cdef list matching(self)
    cdef bint leads_away(self) except -1
    cdef object _feed(self, Terminus outlet)
    cdef int _serve(self, Terminus link) except -1
    cdef Terminus _exempting(self, Shipment* s)
    cdef int serve_held(self) except -1
    cdef bint _may_take_whole(self) except -1
    cdef int serve_dead_letters(self) except -1
    cdef object _offer(self)
    cdef uint32_t ration(self, ReceivingEnd link) except? 0xffffffff
    cdef int _pass_credit_on(self) except -1
    cdef uint32_t _share_of_room(self, ReceivingEnd link) except? 0xffffffff
    cpdef int renew_credit(self) except -1
    cdef int _ship_for_choice(self, Shipment* s, Delivery* d) except -1
    cdef int _hand_over(self, Delivery* d, Terminus outlet) except -1

cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t
from cogwork.dataplane.queue.remote_items cimport RemoteItem, RemoteItems
from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.transport.outgoing cimport OutgoingLink
from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.shipment cimport Shipment, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

# The two name each other: this one is to be known before the other is read.
cdef class FederatedConsumer(Terminus)

from cogwork.dataplane.queue.upstream_link cimport UpstreamLink


@cython.final
cdef class FederatedConsumer(Terminus):
    cdef readonly ConsumerEnd consumer
    # The same, where it speaks AMQP 1.0: then a claim is confirmed to it.
    cdef OutgoingLink link
    cdef readonly Terminus store
    cdef readonly list upstreams
    cdef RemoteItems remote_items
    cdef list places
    cdef dict broken
    cdef readonly dict expected
    cdef dict adopted
    cdef bint is_pending
    cdef int serve(self) except -1
    cdef int _claim_here(self, uint64_t token, Verdict* verdict) except -1
    cdef int _adopt_one(self, bytes tag, uint64_t token) except -1
    cdef bint resume(self, UpstreamLink upstream, Shipment* s, bytes tag) except -1
    cdef int share_out(self) except -1
    cdef int replenish(self, UpstreamLink upstream) except -1
    cdef int forward(self, UpstreamLink upstream, Shipment* s) except -1
    cdef bint take_again(self, UpstreamLink upstream, uint32_t incoming_id, bytes tag) except -1
    cdef int32_t seat(self, UpstreamLink upstream) except -1
    cdef UpstreamLink upstream_of(self, RemoteItem* item)
    cdef int part(self, UpstreamLink upstream) except -1
    cdef int _pass_back(self, RemoteItem* item, uint64_t token) except -1
    cdef bint _has(self, uint64_t token) noexcept
    cdef int _confirm(self, uint64_t token, int code, bytes state) except -1

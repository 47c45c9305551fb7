cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t
from cogwork.dataplane.transport.incoming cimport IncomingLink
from cogwork.dataplane.queue.remote_items cimport Chain, RemoteItems
from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# The two name each other: this one is to be known before the other is read.
cdef class UpstreamLink(IncomingLink)

from cogwork.dataplane.queue.federated_consumer cimport FederatedConsumer


@cython.final
cdef class UpstreamLink(IncomingLink):
    cdef readonly FederatedConsumer federated
    cdef readonly str container
    cdef Chain chain
    cdef int32_t place
    cdef readonly uint32_t returned
    cdef public uint32_t owed
    cdef public uint32_t awaited
    cdef public uint32_t items_max
    cdef bint is_limited
    cdef public bint keeps_order
    cdef bint is_withdrawing
    cdef public bint is_resting
    cdef int withdraw_credit(self) except -1
    cdef int refresh(self, uint32_t share) except -1

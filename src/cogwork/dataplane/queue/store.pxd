cimport cython
from libc.stdint cimport uint32_t

from cogwork.dataplane.queue.enqueue cimport Enqueue
from cogwork.dataplane.queue.commits cimport Commits
from cogwork.dataplane.queue.dispatcher cimport Dispatcher
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.queue.settlement cimport Settlement
from cogwork.dataplane.transport.shipment cimport Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class Store(Enqueue):
    cdef readonly uint32_t shard
    cdef public AddressEntry inlet
    cdef public AddressEntry near_inlet

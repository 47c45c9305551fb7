cimport cython
from libc.stdint cimport uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class AddressSpace:
    cdef readonly Core core
    cdef readonly dict entries
    cdef public object resolver
    cdef public bytes topic_prefix
    cdef public AddressEntry topic_root
    cdef public uint64_t unroutable
    cdef AddressEntry find(self, bytes address)

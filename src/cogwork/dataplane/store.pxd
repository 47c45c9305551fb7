cimport cython
from libc.stdint cimport uint32_t

from cogwork.dataplane.admission cimport Admission
from cogwork.dataplane.commits cimport Commits
from cogwork.dataplane.dispatcher cimport Dispatcher
from cogwork.dataplane.entry cimport AddressEntry
from cogwork.dataplane.ledger cimport Ledger
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class Store(Admission):
    cdef readonly uint32_t shard
    cdef public AddressEntry inlet
    cdef public AddressEntry near_inlet

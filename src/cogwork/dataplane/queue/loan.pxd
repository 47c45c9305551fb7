cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t
from cogwork.dataplane.transport.incoming cimport IncomingLink
from cogwork.dataplane.queue.lent cimport Chain, LentItems
from cogwork.dataplane.transport.outgoing cimport OutgoingLink
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# The two name each other: this one is to be known before the other is read.
cdef class Loan(IncomingLink)

from cogwork.dataplane.queue.borrower cimport Borrower


@cython.final
cdef class Loan(IncomingLink):
    cdef readonly Borrower borrower
    cdef readonly str container
    cdef Chain chain
    cdef int32_t place
    cdef readonly uint32_t returned
    cdef public uint32_t owed
    cdef public uint32_t awaited
    cdef public uint32_t items_max
    cdef bint is_limited
    cdef public bint keeps_order
    cdef bint recalls
    cdef public bint is_resting
    cdef int recall(self) except -1
    cdef int refresh(self, uint32_t share) except -1

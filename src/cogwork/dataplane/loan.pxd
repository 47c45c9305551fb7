cimport cython
from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.incoming cimport IncomingLink
from cogwork.dataplane.outgoing cimport OutgoingLink
from cogwork.dataplane.shipment cimport Shipment, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

cdef class Loan


# An item that a consumer has from another container's shard.
@cython.final
@cython.freelist(1024)
cdef class Lent:
    cdef Loan loan
    cdef str container
    cdef bytes tag
    cdef bytes state
    cdef uint32_t incoming_id
    cdef uint32_t outgoing_id
    cdef int code
    cdef bint settled
    cdef bint awaited


@cython.final
cdef class Loan(IncomingLink):
    cdef readonly Borrower borrower
    cdef readonly str container
    cdef dict numbers
    cdef readonly uint32_t returned
    cdef public uint32_t owed
    cdef public uint32_t awaited
    cdef int refresh(self, uint32_t share) except -1


@cython.final
cdef class Borrower(Terminus):
    cdef readonly OutgoingLink consumer
    cdef readonly Terminus store
    cdef readonly list loans
    cdef readonly uint32_t awaited
    cdef bint is_pending
    cdef dict lent
    cdef dict broken
    cdef uint64_t next_number
    cdef int share_out(self) except -1
    cdef int borrow(self, Loan loan, Shipment* s) except -1
    cdef bint take_again(self, Loan loan, Shipment* s, bytes tag) except -1
    cdef int serve(self) except -1
    cdef int resume(self, Lent lent, uint64_t number, Shipment* s) except -1
    cdef int _pass_back(self, Lent lent) except -1
    cdef int _confirm(self, uint64_t number, int code, bytes state) except -1

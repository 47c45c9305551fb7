cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t
from cogwork.dataplane.incoming cimport IncomingLink
from cogwork.dataplane.lent cimport Chain, Lent, LentItems
from cogwork.dataplane.outgoing cimport OutgoingLink
from cogwork.dataplane.shipment cimport Shipment, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

cdef class Borrower


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


@cython.final
cdef class Borrower(Terminus):
    cdef readonly OutgoingLink consumer
    cdef readonly Terminus store
    cdef readonly list loans
    cdef LentItems lent
    cdef list places
    cdef dict broken
    cdef readonly dict expected
    cdef dict adopted
    cdef bint is_pending
    cdef int serve(self) except -1
    cdef int _claim_here(self, uint64_t token, Verdict* verdict) except -1
    cdef int _adopt_one(self, bytes tag, uint64_t token) except -1
    cdef bint resume(self, Loan loan, Shipment* s, bytes tag) except -1
    cdef int share_out(self) except -1
    cdef int replenish(self, Loan loan) except -1
    cdef int borrow(self, Loan loan, Shipment* s) except -1
    cdef bint take_again(self, Loan loan, uint32_t incoming_id, bytes tag) except -1
    cdef int32_t seat(self, Loan loan) except -1
    cdef Loan loan_of(self, Lent* item)
    cdef int part(self, Loan loan) except -1
    cdef int _pass_back(self, Lent* item, uint64_t token) except -1
    cdef bint _has(self, uint64_t token) noexcept
    cdef int _confirm(self, uint64_t token, int code, bytes state) except -1

from libc.stdint cimport uint32_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.delivery cimport Delivery
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


cdef class Holding(Terminus):
    cdef readonly Core core
    cdef public double ttl_s
    cdef Delivery* held_first
    cdef Delivery* held_last
    cdef readonly uint32_t held
    cdef bint is_expiring
    cdef int hold(self, Delivery* d) except -1
    cdef Delivery* unhold(self) noexcept
    cdef int discard_held(self, Delivery* d) except -1
    cdef int limit_life(self, Delivery* d) except -1
    cdef int give_up(self, Delivery* d, bint is_expired) except -1

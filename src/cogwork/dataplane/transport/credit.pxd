from libc.stdint cimport uint32_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.due cimport Due
from cogwork.dataplane.transport.ends cimport ReceivingEnd
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


cdef class CreditingEnd(ReceivingEnd):
    cdef readonly Core core
    cdef readonly Session session
    cdef readonly AddressEntry entry
    cdef readonly uint32_t window
    cdef uint32_t limit
    cdef int _ask_credit_back(self) except -1
    cdef Due asking
    cdef int ask(self, Due due) except -1
    cdef int _take_back_credit(self) except -1
    cdef int flow_later(self) except -1

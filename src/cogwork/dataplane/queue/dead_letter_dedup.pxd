cimport cython

from cogwork.dataplane.message.envelope cimport DEAD_LETTER_ID_BYTES, Envelope
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Remembered dead letters: many times what the queues that share a dead-letter address have on the way.
cdef enum:
    REMEMBERED_MAX = 16384


@cython.final
cdef class DeadLetterDedup:
    cdef dict ids
    cdef bint knows(self, bytes key) except -1
    cpdef int remember(self, bytes key) except -1

cdef bytes dead_letter_key(Shipment* s, Envelope* e)
cdef bytes without_dead_letter_id(Shipment* s, Envelope* e)

cimport cython

from cogwork.dataplane.message.envelope cimport LETTER_ID_BYTES, Envelope
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Remembered letters: many times what the queues that share a dead-letter address have on the way.
cdef enum:
    LETTERS_MAX = 16384


@cython.final
cdef class Letters:
    cdef dict ids
    cdef bint knows(self, bytes letter) except -1
    cpdef int remember(self, bytes letter) except -1

cdef bytes letter_of(Shipment* s, Envelope* e)
cdef bytes opened(Shipment* s, Envelope* e)

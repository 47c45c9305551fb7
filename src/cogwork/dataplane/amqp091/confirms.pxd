cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from cogwork.dataplane.amqp091.wire cimport BasicWire
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# What is known of a published message.
cdef enum:
    OPEN = 0
    TAKEN = 1
    REFUSED = 2
    TOLD = 3


@cython.final
cdef class Confirms:
    cdef BasicWire wire
    cdef uint32_t channel
    # Numbers up to this one have been given.
    cdef readonly uint64_t published
    # The first one of which nothing is known, and what is to be told of those before it.
    cdef uint64_t oldest
    cdef uint64_t row_end
    cdef uint64_t row_count
    cdef uint8_t row_state
    # Those behind it of which something is to be told.
    cdef list apart
    cdef uint8_t* states
    cdef uint64_t size
    cdef uint64_t count(self) except 0
    cdef int note(self, uint64_t number, uint8_t state) except -1
    cdef int write_all(self) except -1
    cdef int _add_to_row(self, uint8_t state) except -1
    cdef int _write_row(self) except -1
    cdef int _write(self, uint64_t number, uint8_t state, bint multiple) except -1
    cdef int _grow(self) except -1

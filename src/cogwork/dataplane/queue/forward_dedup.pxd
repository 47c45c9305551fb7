cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# The tag of a message that another container sends to a queue's owner: who it is, in which of its
# lives, and the message's number; and how many numbers below the highest one are told apart.
cdef enum:
    FORWARD_TAG_BYTES = 24
    FORWARDS_MAX = 4096
    FORWARD_WORDS = 64


@cython.final
cdef class ForwardSource:
    cdef uint64_t incarnation
    cdef uint64_t highest
    cdef uint64_t[FORWARD_WORDS] taken
    cdef bint has(self, uint64_t number) noexcept
    cdef void note(self, uint64_t number) noexcept


@cython.final
cdef class ForwardDedup:
    cdef dict sources
    cdef bint knows(self, octets tag) except -1
    cdef int remember(self, octets tag) except -1
    cdef int restore(self, octets p) except -1
    cdef bytes row(self, object source)

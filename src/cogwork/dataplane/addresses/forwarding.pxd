cimport cython
from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.addresses.exchange cimport Changes, ExchangeInlet
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

cdef enum:
    # The message-format of a wrapping: "CWF" and a version.
    FORWARD_FORMAT = 0x43574600


# The parts of a wrapping; they point into its octets.
cdef struct ForwardParts:
    uint32_t format
    octets route
    uint32_t route_size
    octets keys
    uint32_t keys_size
    octets message
    uint32_t message_size


@cython.final
cdef class ForwardOutlet(Terminus):
    cdef readonly Core core
    cdef readonly AddressEntry way
    cdef readonly bytes route
    cdef Changes changes


@cython.final
cdef class LostWay(Terminus):
    cdef readonly Core core
    cdef public bint is_given_up
    cdef readonly uint64_t dropped


@cython.final
cdef class ForwardInlet(Terminus):
    cdef readonly Core core
    cdef object find
    cdef dict known
    cdef int _refuse(self, uint32_t source_index, uint32_t source_generation, uint64_t token, bint settled) except -1

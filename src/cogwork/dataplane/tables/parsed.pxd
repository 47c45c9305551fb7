from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.message.sections cimport Layout
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Fields of the properties section that columns are made of: the first ones.
cdef enum:
    FIELDS = 7

# What of a record can be read. Where it is malformed, nothing can.
cdef struct Parsed:
    Layout layout
    bint is_whole
    # Where each field's value lies; `start` is -1 where it is absent.
    int64_t[7] start
    int64_t[7] end
    # The pairs of the application-properties.
    int64_t pairs
    int64_t pairs_end

cdef int parse(octets p, int64_t size, Parsed* parsed) noexcept nogil
cdef int64_t size_without_annotations(int64_t size, const Parsed* parsed) noexcept nogil

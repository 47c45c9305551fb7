from libc.stdint cimport int32_t, int64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.encoding.writer cimport Writer

# Python objects that are raised: C globals, not module lookups.
cdef object EncodeError

# A column of text or octets, as Arrow lays it out; owned by whoever holds the batch.
cdef struct Column:
    bint is_there
    # One bit a value, lowest first; NULL where none is null.
    octets validity
    # One more than there are values.
    const int32_t* offsets
    octets data
    # Which one is the first value.
    int64_t first


cdef class RowEncoder:
    cdef Column[11] fields
    cdef int field_count
    cdef Column body
    cdef bint body_is_text
    cdef Column properties
    cdef Column keys
    cdef Column values
    cdef int put_row(self, Writer* out, int64_t row) except -1
    cdef int put_fields(self, Writer* out, int64_t row) except -1
    cdef int put_map(self, Writer* out, int64_t row) except -1
    cdef int put_body(self, Writer* out, int64_t row) except -1

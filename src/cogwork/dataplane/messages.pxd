cimport cython
from libc.stdint cimport uint32_t

from cogwork.dataplane.codec cimport Octets, Writer
from cogwork.dataplane.sections cimport Layout

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH

# Python objects that the hot path compares with or calls: C globals, not module lookups.
cdef object EncodeError, Symbol, ULong
cdef list FIELD_TYPES, PLAIN_TYPES

cdef class PropertyField:
    cdef int index

@cython.freelist(64)
cdef class Message:
    # What it was decoded from, where its sections lie in that, which of them (one bit a rank) have
    # not been decoded yet, and whether nothing was decoded or changed.
    cdef bytes _raw
    cdef Layout _layout
    cdef unsigned int _pending
    cdef bint _is_intact

    cdef bint _durable
    cdef unsigned char _priority
    cdef bint _has_ttl
    cdef uint32_t _ttl_ms
    cdef bint _first_acquirer
    cdef uint32_t _delivery_count

    cdef list _fields
    cdef dict _delivery_annotations
    cdef dict _annotations
    cdef dict _properties
    cdef dict _footer

    # The section code; one bytes for DATA, one value for VALUE, else the list of the parts.
    cdef unsigned char _body_code
    cdef object _body

    cdef int write(self, Writer* out) except -1
    cdef int open_section(self, int rank) except -1
    cdef int load(self, int rank) except -1
    cdef int load_header(self) except -1
    cdef int load_fields(self, list values) except -1
    cdef int load_body(self) except -1
    cdef object section_value(self, int rank)
    cdef int refuse(self) except -1
    cdef object field(self, int index)
    cdef int set_field(self, int index, object value) except -1
    cdef int set_body(self, object body) except -1
    cdef int set_ttl(self, object ttl_s) except -1
    cdef int write_rank(self, Writer* out, int rank) except -1
    cdef int write_header(self, Writer* out) except -1
    cdef int header_length(self) except -1
    cdef int write_fields(self, Writer* out) except -1
    cdef int write_body(self, Writer* out) except -1

cdef Message message_from(bytes raw)
cdef Message filled(Message message, bytes raw)

from cogwork.dataplane.header cimport Header
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.writer cimport Writer

# Python objects that the hot path compares with or calls: C globals, not module lookups.
cdef object EncodeError, Symbol, ULong
cdef list PLAIN_TYPES

cdef int put_header(Writer* out, Header* header) except -1
cdef int put_fields(Writer* out, list fields) except -1
cdef int put_body(Writer* out, unsigned char code, object body) except -1
cdef int put_properties(Writer* out, dict entries) except -1
cdef int put_annotations(Writer* out, unsigned char code, dict entries) except -1
cdef bytes data_section(bytes body)

from cogwork.dataplane.message.messages cimport Message
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.encoding.writer cimport Writer

# Python objects that the hot path compares with or calls: C globals, not module lookups.
cdef object ULong
cdef list FIELD_TYPES

cdef int fill(Message message, bytes raw) except -1
cdef int load_section(Message message, int rank) except -1
cdef int write_sections(Message message, Writer* out) except -1

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.encoding.writer cimport Writer

# Python objects that the hot path compares with or calls: C globals, not module lookups.
cdef int DEPTH_MAX
cdef object Array, Byte, Described, Float32, Int, Short, Symbol, UByte, UInt, ULong, UShort
cdef object EPOCH, UUID, datetime

cdef int put_text(Writer* out, object text) except -1
cdef int put_symbol(Writer* out, object text) except -1
cdef int put_value(Writer* out, object value, int depth) except -1
cdef int put_names(Writer* out, tuple names) except -1

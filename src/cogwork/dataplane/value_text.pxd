from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.column cimport Column
from cogwork.dataplane.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

ctypedef uint8_t* Digits

cdef int put_value(Column column, octets p, int64_t at, int64_t end) except -1
cdef bint is_utf8(octets p, int64_t size) noexcept nogil

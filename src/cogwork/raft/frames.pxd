cimport cython
from libc.stdint cimport int64_t

from cogwork.raft.wire cimport encode
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class Frame:
    cdef list parts
    cdef int64_t size_bytes


# A message's parts.
@cython.final
cdef class Encoded:
    cdef object message
    cdef list parts
    cdef int64_t size_bytes


@cython.final
cdef class Frames:
    cdef dict _open
    cdef list _full
    cdef dict _encoded
    cpdef int add(self, str to, object group, object message) except -1
    cdef Encoded encode_once(self, object group, object message)
    cpdef list take(self)


cdef Frame new_frame()
cdef Encoded encoded(object group, object message)
cdef list joined(list parts, list known)

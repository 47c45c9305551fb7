cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.transport.wire cimport Channel


@cython.final
cdef class Splice(Channel):
    cdef public object owner
    cdef readonly Splice other
    cdef readonly uint64_t frames
    cdef readonly uint64_t bytes
    cdef readonly uint64_t messages
    cdef int _copy(self, octets data, int64_t size, uint32_t frames, uint32_t messages) except -1
    cdef int _pass_one(self, octets frame, int64_t size, uint32_t messages) except -1

from libc.stdint cimport uint64_t
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


cdef class Interest:
    cdef readonly uint64_t version
    cdef list match_octets(self, octets subject, Py_ssize_t size)

from cogwork.dataplane.core cimport Core

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH

cdef class Flusher:
    cdef readonly Core core
    cdef object call_soon
    cdef bint due
    cdef int later(self) except -1
    cdef int now(self) except -1

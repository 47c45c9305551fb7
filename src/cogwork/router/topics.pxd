cimport cython
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from cpython.object cimport PyObject
from cogwork.dataplane.addresses.interest cimport Interest
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.router.branches cimport NOWHERE, ROOT, Branch, Branches, find, is_leaf
from cogwork.router.words cimport Words, resized

cdef extern from *:
    """
    static inline void cogwork_prefetch(const void* address) { __builtin_prefetch(address, 1); }
    """
    void cogwork_prefetch(const void* address) noexcept nogil

cdef enum:
    KEPT_MAX = 4096
    SEEN_SLOTS = 16384

# The match that found an outlet last, and the outlet: borrowed, since a dictionary holds it.
cdef struct Outlet:
    uint64_t match
    PyObject* itself


@cython.final
cdef class Outlets:
    cdef dict numbers
    cdef Outlet* at
    cdef uint32_t* patterns
    cdef uint32_t* found
    cdef uint32_t found_count
    cdef uint32_t capacity
    cdef uint32_t used
    cdef uint32_t free
    cdef uint32_t number(self, object outlet) except? 0
    cdef uint32_t add(self, object outlet) except 0
    cdef int remove(self, object outlet, uint32_t number) except -1
    cdef int _grow(self) except -1


@cython.final
cdef class TopicTrie(Interest):
    cdef uint64_t _matches
    cdef int64_t _left
    cdef uint64_t _secret
    cdef Words _words
    cdef Branches _branches
    cdef Outlets _outlets
    cdef dict _patterns
    cdef dict _places
    cdef dict _kept
    cdef uint16_t[16384] _seen

    cpdef bint bind(self, bytes pattern, object outlet) except -1
    cpdef bint unbind(self, bytes pattern, object outlet) except -1
    cpdef object touch(self)
    cpdef list match(self, bytes subject)
    cpdef dict patterns(self)
    cdef int _changed(self) except -1
    cdef uint32_t _plant(self, bytes pattern) except 0
    cdef int _keep(self, uint64_t slot, bytes subject, list found) except -1
    cdef list _find(self)
    cdef void _go_on(self, uint32_t number, Py_ssize_t at) noexcept
    cdef void _spread(self, uint32_t number, Py_ssize_t at) noexcept
    cdef void _take(self, Branch* branch) noexcept

cimport cython

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


# `create_future` makes what a task waits for, `on_stale` the exception for a list of stale items.
@cython.final
cdef class Claim:
    cdef object create_future
    cdef object on_stale
    cdef Py_ssize_t waiting
    cdef list stale
    cdef object failure
    cdef object waiter
    cdef int answer(self, object item, bint is_stale) except -1


cdef Claim new_claim(object create_future, object on_stale, Py_ssize_t waiting)

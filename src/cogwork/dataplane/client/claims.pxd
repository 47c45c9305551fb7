cimport cython

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


# `create_future` makes what a task waits for, `on_late` the exception for a list of items that were
# not confirmed.
@cython.final
cdef class Claim:
    cdef object create_future
    cdef object on_late
    cdef Py_ssize_t waiting
    cdef list late
    cdef object failure
    cdef object waiter
    cdef int answer(self, object item, bint is_late) except -1


cdef Claim new_claim(object create_future, object on_late, Py_ssize_t waiting)

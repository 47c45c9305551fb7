cimport cython
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH

cdef extern from "<sys/epoll.h>":
    cdef union epoll_data "epoll_data":
        int fd
    cdef struct epoll_event "epoll_event":
        uint32_t events
        epoll_data data
    int epoll_wait(int epoll_fd, epoll_event* events, int count, int timeout_ms) nogil
    enum:
        EPOLLIN
        EPOLLOUT

cdef enum:
    EVENTS_MAX = 64
    URGENT_MAX = 16

@cython.final
cdef class Poller:
    cdef readonly dict readers
    cdef readonly set urgent
    cdef public bint is_wanted
    cdef readonly list after
    cdef readonly int epoll_fd
    cdef object on_fault
    # What `epoll_wait` has told and was not served yet.
    cdef epoll_event[EVENTS_MAX] events
    cdef int count
    cdef int at

    cdef int urgent_fd
    cdef double looked_s
    cdef int wait(self, double timeout_s) except -1
    cdef bint serve_urgent(self, list others) except -1
    cdef int serve(self, list others) except -1
    cdef bint look(self, list others) except -1
    cdef bint serve_first(self, epoll_event* events, int count, list others) except -1
    cdef int serve_one(self, int fd, uint32_t mask, list others) except -1
    cdef int end_round(self) except -1
    cdef int call(self, object reader) except -1

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


@cython.final
cdef class Poller:
    cdef readonly dict readers
    cdef public bint is_wanted
    cdef readonly int epoll_fd
    cdef object on_fault
    cdef epoll_event[EVENTS_MAX] events
    cdef int wait(self, double timeout_s) except -1
    cdef list serve(self, int count)
    cdef int call(self, object reader) except -1

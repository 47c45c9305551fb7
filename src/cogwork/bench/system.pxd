"""The operating system's calls on the load generator's hot path."""

cdef extern from "<sys/types.h>" nogil:
    ctypedef Py_ssize_t ssize_t

cdef extern from "<sys/socket.h>" nogil:
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
    ssize_t recv(int fd, void *at, size_t size, int flags)
    ssize_t send(int fd, const void *at, size_t size, int flags)

cdef extern from "<poll.h>" nogil:
    enum:
        POLLIN
        POLLOUT
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd *fds, unsigned long count, int timeout_ms)

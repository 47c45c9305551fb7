# The clock and the sockets of the operating system; errors come back as negative numbers.

cdef extern from *:
    """
    #include <sys/types.h>
    #include <sys/socket.h>
    #include <errno.h>
    #include <time.h>
    static inline double cogwork_monotonic_s(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    static inline ssize_t cogwork_recv(int fd, void* buffer, size_t size) {
        ssize_t n = recv(fd, buffer, size, MSG_DONTWAIT);
        return n >= 0 ? n : -(ssize_t)errno;
    }
    static inline ssize_t cogwork_send(int fd, const void* buffer, size_t size) {
        ssize_t n = send(fd, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        return n >= 0 ? n : -(ssize_t)errno;
    }
    """
    double clock_s "cogwork_monotonic_s" () noexcept nogil
    Py_ssize_t receive "cogwork_recv" (int fd, void* buffer, size_t size) noexcept nogil
    Py_ssize_t send "cogwork_send" (int fd, const void* buffer, size_t size) noexcept nogil
    int EAGAIN
    int EINTR

# Writing to files; errors come back as errno, 0 is success.

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <sys/eventfd.h>
    #include <sys/types.h>
    #include <unistd.h>
    static inline int cogwork_write_at(int fd, const char* data, int64_t size, int64_t offset) {
        while (size > 0) {
            ssize_t n = pwrite(fd, data, (size_t)size, (off_t)offset);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return n < 0 ? errno : EIO;
            data += n;
            size -= n;
            offset += n;
        }
        return 0;
    }
    /* Where the file system cannot reserve space, the file only gets its size. */
    static inline int cogwork_allocate(int fd, int64_t size) {
        int done;
        do done = fallocate(fd, 0, 0, (off_t)size); while (done < 0 && errno == EINTR);
        if (done < 0 && errno == EOPNOTSUPP) done = ftruncate(fd, (off_t)size);
        return done < 0 ? errno : 0;
    }
    static inline int cogwork_sync(int fd) {
        return fdatasync(fd) < 0 ? errno : 0;
    }
    static inline int cogwork_make_event(void) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return fd < 0 ? -errno : fd;
    }
    static inline void cogwork_raise_event(int fd) {
        eventfd_write(fd, 1);
    }
    static inline void cogwork_clear_event(int fd) {
        eventfd_t count;
        eventfd_read(fd, &count);
    }
    """
    int write_at "cogwork_write_at" (int fd, const char* data, int64_t size, int64_t offset) noexcept nogil
    int allocate_space "cogwork_allocate" (int fd, int64_t size) noexcept nogil
    int sync_data "cogwork_sync" (int fd) noexcept nogil
    # A negative errno where there is none to be had.
    int make_event "cogwork_make_event" () noexcept nogil
    void raise_event "cogwork_raise_event" (int fd) noexcept nogil
    void clear_event "cogwork_clear_event" (int fd) noexcept nogil
    int close_file "close" (int fd) noexcept nogil

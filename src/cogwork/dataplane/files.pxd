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
    #include <sys/uio.h>
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
    /* What a kernel takes at once (IOV_MAX). */
    #define COGWORK_PARTS_MAX 1024
    /* Writes parts behind one another; what has been written is cut off them. */
    static inline int cogwork_write_parts_at(int fd, struct iovec* part, int count, int64_t offset) {
        for (;;) {
            ssize_t n;
            while (count > 0 && part->iov_len == 0) part++, count--;
            if (count == 0) return 0;
            n = pwritev(fd, part, count < COGWORK_PARTS_MAX ? count : COGWORK_PARTS_MAX, (off_t)offset);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return n < 0 ? errno : EIO;
            offset += n;
            for (; count > 0 && (size_t)n >= part->iov_len; part++, count--) n -= part->iov_len;
            if (n > 0) {
                part->iov_base = (char*)part->iov_base + n;
                part->iov_len -= n;
            }
        }
    }
    /* Where a file system or a kernel cannot reserve space, or a sandbox does not let us, the file
       only gets its size. A file that is not to be changed refuses that, too. */
    static inline int cogwork_cannot_reserve(int error) {
        return error == EOPNOTSUPP || error == ENOSYS || error == EPERM;
    }
    static inline int cogwork_allocate(int fd, int64_t size) {
        int done;
        do done = fallocate(fd, 0, 0, (off_t)size); while (done < 0 && errno == EINTR);
        if (done < 0 && cogwork_cannot_reserve(errno)) done = ftruncate(fd, (off_t)size);
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
    struct iovec:
        void* iov_base
        size_t iov_len
    int write_at "cogwork_write_at" (int fd, const char* data, int64_t size, int64_t offset) noexcept nogil
    int write_parts_at "cogwork_write_parts_at" (int fd, iovec* part, int count, int64_t offset) noexcept nogil
    int allocate_space "cogwork_allocate" (int fd, int64_t size) noexcept nogil
    int sync_data "cogwork_sync" (int fd) noexcept nogil
    # A negative errno where there is none to be had.
    int make_event "cogwork_make_event" () noexcept nogil
    void raise_event "cogwork_raise_event" (int fd) noexcept nogil
    void clear_event "cogwork_clear_event" (int fd) noexcept nogil
    int close_file "close" (int fd) noexcept nogil

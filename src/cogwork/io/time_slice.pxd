from libc.stdint cimport uint64_t

# `struct sched_attr`, as the kernel has had it since 3.14; the C library has no call for it.
cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <sys/resource.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    #define COGWORK_KEEP_POLICY 8
    static inline int cogwork_set_slice(uint64_t slice_ns) {
    #ifdef SYS_sched_setattr
        struct {
            uint32_t size, policy;
            uint64_t flags;
            int32_t nice;
            uint32_t priority;
            uint64_t runtime, deadline, period;
        } attributes = {0};
        errno = 0;
        attributes.size = sizeof(attributes);
        attributes.flags = COGWORK_KEEP_POLICY;
        attributes.nice = getpriority(PRIO_PROCESS, 0);
        attributes.runtime = slice_ns;
        if (errno != 0 || syscall(SYS_sched_setattr, 0, &attributes, 0) != 0)
            return errno;
        return 0;
    #else
        (void)slice_ns;
        return ENOSYS;
    #endif
    }
    """
    int set_slice "cogwork_set_slice" (uint64_t slice_ns) noexcept nogil

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.due cimport Due
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


# From a position on, output is held until a barrier is released.
cdef struct Hold:
    uint64_t position
    uint64_t barrier


cdef class Output(Due):
    cdef readonly Core core
    cdef public object owner
    cdef public object on_output
    cdef readonly int fd
    cdef public uint32_t max_frame_out
    cdef readonly bint closed
    cdef readonly bint congested
    cdef readonly bint blocked
    cdef int lost_errno
    cdef readonly double last_sent_s
    cdef uint8_t* out
    cdef uint64_t out_start
    cdef uint64_t out_end
    cdef uint64_t out_capacity
    cdef list stalled
    cdef list departing
    cdef uint64_t kept_bytes
    cdef Hold* holds
    cdef uint32_t holds_count
    cdef uint32_t holds_capacity
    cdef uint64_t last_barrier
    cdef public bint is_never_held
    cdef readonly uint64_t bytes_out
    cdef uint64_t opened_at
    cdef readonly uint64_t frames_out
    cdef int mark_dirty(self) except -1
    cdef int committed(self, uint32_t size) except -1
    cdef int append(self, octets data, uint32_t size) except -1
    cdef int transmit(self) except -1
    cdef int drained(self) except -1
    cdef int _report_departed(self) except -1
    cdef int wake_stalled(self) except -1
    cdef int _grow(self, uint32_t size) except -1
    cdef int _call_for_output(self) except -1
    cdef object _blame(self, object error)
    cdef int shed_output(self) except -1
    cdef int _hold(self) except -1

    # Holds whatever is written from now on until the core's open barrier is released.
    @cython.final
    cdef inline int hold(self) except -1:
        if self.last_barrier != self.core.open_barrier:
            self._hold()
        return 0

    # Counts all that was ever written.
    @cython.final
    cdef inline uint64_t written(self) noexcept:
        return self.bytes_out + self.out_end - self.out_start

    # Says whether this process has sent the first `count` bytes that were ever written.
    @cython.final
    cdef inline bint has_sent(self, uint64_t count) noexcept:
        return self.bytes_out >= count and self.kept_bytes == 0

    # Where the output ends that may be sent now.
    @cython.final
    cdef inline uint64_t sendable_end(self) noexcept:
        if self.holds_count == 0:
            return self.out_end
        return self.out_start + (self.holds[0].position - self.bytes_out)

    # Returns where the next `size` bytes of output are to be written; `committed` then counts them.
    @cython.final
    cdef inline uint8_t* reserve(self, uint32_t size) except NULL:
        if self.out_end + size > self.out_capacity:
            self._grow(size)
        return self.out + self.out_end

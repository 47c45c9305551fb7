cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from cogwork.dataplane.files cimport iovec
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.threads cimport pthread_cond_t, pthread_mutex_t, pthread_t

# The last thing that was done for a job: where there is an error, that is what failed.
cdef enum:
    STEP_WRITE = 1
    STEP_SYNC = 2

# Without data or parts it reserves `size` octets from the file's beginning. Parts are written behind
# one another; their owner is the tuple that has them.
cdef struct Job:
    Job* next
    PyObject* owner
    const char* data
    iovec* parts
    int part_count
    int64_t size
    int64_t offset
    uint64_t id
    int fd
    int error
    int step
    bint wants_sync
    bint has_synced

cdef struct JobList:
    Job* first
    Job* last

# What the two threads share. `queued`, `done` and `is_stopping` belong to whoever has the mutex.
cdef struct Desk:
    pthread_t thread
    pthread_mutex_t mutex
    pthread_cond_t work
    JobList queued
    JobList done
    int event_fd
    bint is_stopping

cdef void* serve(void* desk) noexcept nogil
cdef void perform(Job* first) noexcept nogil
cdef void sync_file(Job* job) noexcept nogil
cdef void put(JobList* to, Job* job) noexcept nogil


@cython.final
cdef class Disk:
    cdef Desk* desk
    cdef uint64_t last_job_id
    cdef readonly int64_t capacity_bytes
    cdef readonly int64_t held_bytes
    cdef readonly uint64_t write_count
    cdef readonly uint64_t sync_count
    cdef uint64_t _submit_parts(self, int fd, tuple parts, int64_t offset, bint sync) except? 0
    cdef Job* _make(self, int fd, object owner, int64_t size, int64_t offset, bint sync) except NULL
    cdef uint64_t _queue(self, Job* job)
    cdef bint _is_full(self, int64_t size) except -1
    cdef int _stop(self) except -1

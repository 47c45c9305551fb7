"""The disk thread: writes and synchronises files while the event loop goes on.

Theory of operation. The loop's thread queues jobs, the disk thread takes all that are queued,
writes them in order, and then synchronises each file that one of them asks for once: what queued
up during one synchronisation shares the next, and that is the group commit. Nothing is written
between the last write of a group and the end of its synchronisation. The thread never touches a
Python object: octets stay where they are, held by a reference that the loop's thread gives back.
Done jobs wait in a list; an eventfd tells the loop.

An error is reported and nothing is tried again: after a failed synchronisation the kernel may
count pages as clean that never reached the disk, so a second success would mean nothing.
"""

import cython
from cython.cimports.cogwork.dataplane.files import (
    allocate_space,
    clear_event,
    close_file,
    make_event,
    raise_event,
    sync_data,
    write_at,
    write_parts_at,
)
from cython.cimports.cogwork.dataplane.threads import (
    pthread_cond_destroy,
    pthread_cond_init,
    pthread_cond_signal,
    pthread_cond_wait,
    pthread_join,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
    start_thread,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
from cython.cimports.cpython.ref import Py_DECREF, Py_INCREF
from cython.cimports.libc.stdlib import calloc, free, malloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

WRITE = STEP_WRITE
SYNC = STEP_SYNC


def serve(desk):
    """What the thread runs, until it is told to stop and nothing is queued."""
    shared: cython.pointer(Desk) = cython.cast(cython.pointer(Desk), desk)
    batch: JobList
    while True:
        pthread_mutex_lock(cython.address(shared.mutex))
        while shared.queued.first == cython.NULL and not shared.is_stopping:
            pthread_cond_wait(cython.address(shared.work), cython.address(shared.mutex))
        batch = shared.queued
        shared.queued.first = shared.queued.last = cython.NULL
        pthread_mutex_unlock(cython.address(shared.mutex))
        if batch.first == cython.NULL:
            break
        perform(batch.first)
        pthread_mutex_lock(cython.address(shared.mutex))
        if shared.done.first == cython.NULL:
            shared.done = batch
        else:
            shared.done.last.next = batch.first
            shared.done.last = batch.last
        pthread_mutex_unlock(cython.address(shared.mutex))
        # Only now, so that the loop does not wake up to wait for the mutex. It may have taken the
        # jobs already: then it finds none.
        raise_event(shared.event_fd)
    return cython.NULL


def perform(first):
    """Write a group of jobs, then synchronise each file once that one of them asks for."""
    job: cython.pointer(Job) = first
    while job != cython.NULL:
        job.step = STEP_WRITE
        if job.parts != cython.NULL:
            job.error = write_parts_at(job.fd, job.parts, job.part_count, job.offset)
        elif job.data == cython.NULL:
            job.error = allocate_space(job.fd, job.size)
        elif job.size:
            job.error = write_at(job.fd, job.data, job.size, job.offset)
        job = job.next
    job = first
    while job != cython.NULL:
        if job.wants_sync and job.error == 0 and job.step == STEP_WRITE:
            job.has_synced = True
            sync_file(job)
        job = job.next


def sync_file(job):
    """Synchronise the file of a job, for it and for all later ones of the group that ask."""
    fd: cython.int = job.fd
    error: cython.int = sync_data(fd)
    while job != cython.NULL:
        if job.fd == fd and job.wants_sync and job.error == 0:
            job.step = STEP_SYNC
            job.error = error
        job = job.next


def put(to, job):
    """Append a job to a list."""
    if to.first == cython.NULL:
        to.first = job
    else:
        to.last.next = job
    to.last = job


class Disk:
    """A thread that writes.

    Attributes:
        capacity_bytes: How much it holds at most, until `completed` gives it back.
        held_bytes: How much it holds now.
        write_count: How many writes have completed.
        sync_count: How many synchronisations have.
    """

    def __cinit__(self):
        self.desk = cython.cast(cython.pointer(Desk), calloc(1, cython.sizeof(Desk)))
        if self.desk == cython.NULL:
            raise MemoryError("no room for a disk thread")
        self.desk.event_fd = -1

    def __init__(self, capacity_bytes: int = 64 << 20):
        """Start the thread.

        Args:
            capacity_bytes: How much it holds at most.
        """
        error: cython.int
        assert self.desk.event_fd < 0
        self.capacity_bytes = capacity_bytes
        self.desk.event_fd = make_event()
        if self.desk.event_fd < 0:
            raise OSError(-self.desk.event_fd, "no eventfd for the disk thread")
        pthread_mutex_init(cython.address(self.desk.mutex), cython.NULL)
        pthread_cond_init(cython.address(self.desk.work), cython.NULL)
        error = start_thread(
            cython.address(self.desk.thread), serve, cython.cast(cython.p_void, self.desk)
        )
        if error:
            close_file(self.desk.event_fd)
            self.desk.event_fd = -1
            raise OSError(error, "no thread for the disk")

    def __dealloc__(self):
        if self.desk != cython.NULL:
            self._stop()
            free(self.desk)

    def fileno(self) -> int:
        """Return the descriptor that is readable while `completed` has something to tell."""
        return self.desk.event_fd

    def submit(self, fd: int, offset: int, data, sync: bool) -> int:
        """Queue a write.

        Args:
            fd: Where; open for writing until the job id has come back.
            offset: From the beginning of the file.
            data: What, or a tuple of what is written one behind the other and so need not be
                joined; nothing writes nothing, which still waits its turn.
            sync: Whether the file's data are to be synchronised then.

        Returns:
            The job id that `completed` will name; 0 where as much is held as may be: try again
            when something has completed.
        """
        job: cython.pointer(Job)
        if type(data) is tuple:
            return self._submit_parts(fd, data, offset, sync)
        if type(data) is not bytes:
            raise TypeError(f"what is written is bytes, or a tuple of them, not {data!r}")
        octets: bytes = data
        if self._is_full(PyBytes_GET_SIZE(octets)):
            return 0
        job = self._make(fd, octets, PyBytes_GET_SIZE(octets), offset, sync)
        job.data = PyBytes_AS_STRING(octets)
        return self._queue(job)

    def _submit_parts(self, fd, parts, offset, sync):
        job: cython.pointer(Job)
        vector: cython.pointer(iovec)
        at: cython.int = 0
        size: int64_t = 0
        for part in parts:
            if type(part) is not bytes:
                raise TypeError(f"a part of what is written is bytes, not {part!r}")
            size += PyBytes_GET_SIZE(part)
        if self._is_full(size):
            return 0
        vector = cython.cast(cython.pointer(iovec), malloc((len(parts) + 1) * cython.sizeof(iovec)))
        if vector == cython.NULL:
            raise MemoryError("no room for another job of the disk thread")
        for part in parts:
            vector[at].iov_base = cython.cast(cython.p_void, PyBytes_AS_STRING(part))
            vector[at].iov_len = PyBytes_GET_SIZE(part)
            at += 1
        try:
            job = self._make(fd, parts, size, offset, sync)
        except MemoryError:
            free(vector)
            raise
        job.parts = vector
        job.part_count = at
        return self._queue(job)

    def allocate(self, fd: int, size_bytes: int, sync: bool) -> int:
        """Queue the reservation of space for a file, from its beginning.

        Args:
            fd: Whose.
            size_bytes: The size that the file has at least, afterwards.
            sync: Whether the file is to be synchronised then.

        Returns:
            The job id that `completed` will name.
        """
        if self._is_full(0):
            return 0
        return self._queue(self._make(fd, None, size_bytes, 0, sync))

    def _is_full(self, size):
        if self.desk.event_fd < 0:
            raise ValueError("the disk thread has stopped")
        return self.held_bytes > 0 and self.held_bytes + size > self.capacity_bytes

    def _make(self, fd, owner, size, offset, sync):
        job: cython.pointer(Job) = cython.cast(cython.pointer(Job), calloc(1, cython.sizeof(Job)))
        if job == cython.NULL:
            raise MemoryError("no room for another job of the disk thread")
        Py_INCREF(owner)
        job.owner = cython.cast(cython.pointer(PyObject), owner)
        job.size = size
        job.offset = offset
        job.fd = fd
        job.wants_sync = sync
        return job

    def _queue(self, job):
        self.last_job_id += 1
        job.id = self.last_job_id
        if job.data != cython.NULL or job.parts != cython.NULL:
            self.held_bytes += job.size
        pthread_mutex_lock(cython.address(self.desk.mutex))
        put(cython.address(self.desk.queued), job)
        pthread_mutex_unlock(cython.address(self.desk.mutex))
        # Only now, so that the thread does not wake up to wait for the mutex.
        pthread_cond_signal(cython.address(self.desk.work))
        return self.last_job_id

    def completed(self) -> list:
        """Take what is done, in the order in which it was submitted.

        Returns:
            Of each job the job id, its errno (0 is success) and what was done last for it, WRITE or
            SYNC: where there is an error, that is what failed. A job that wants to be synchronised
            and has WRITE is not, for its write failed.
        """
        done: JobList
        job: cython.pointer(Job)
        found: list = []
        if self.desk.event_fd < 0:
            return found
        pthread_mutex_lock(cython.address(self.desk.mutex))
        clear_event(self.desk.event_fd)
        done = self.desk.done
        self.desk.done.first = self.desk.done.last = cython.NULL
        pthread_mutex_unlock(cython.address(self.desk.mutex))
        while done.first != cython.NULL:
            job = done.first
            done.first = job.next
            found.append((job.id, job.error, job.step))
            self.sync_count += job.has_synced
            if job.data != cython.NULL or job.parts != cython.NULL:
                self.write_count += 1
                self.held_bytes -= job.size
            Py_DECREF(cython.cast(object, job.owner))
            free(job.parts)
            free(job)
        return found

    def close(self) -> None:
        """Do what is queued, and end the thread; nothing completes any more.

        Call it after the last `completed` that matters: this one waits for the disk.
        """
        self._stop()

    def _stop(self):
        if self.desk.event_fd < 0:
            return 0
        with cython.nogil:
            pthread_mutex_lock(cython.address(self.desk.mutex))
            self.desk.is_stopping = True
            pthread_cond_signal(cython.address(self.desk.work))
            pthread_mutex_unlock(cython.address(self.desk.mutex))
            pthread_join(self.desk.thread, cython.NULL)
        self.completed()
        pthread_mutex_destroy(cython.address(self.desk.mutex))
        pthread_cond_destroy(cython.address(self.desk.work))
        close_file(self.desk.event_fd)
        self.desk.event_fd = -1
        return 0

"""The connection that all roles share: layout and virtual methods."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.bench.layout cimport FAREWELL_SIZE, Disposition, Flow, Frame, Transfer, octet

cdef uint64_t now_ns() noexcept nogil

cdef class Wire:
    cdef int _fd
    cdef int _channel
    cdef int _status
    cdef const char *_fault
    cdef bint _stalled
    cdef octet *_incoming
    cdef Py_ssize_t _in_start
    cdef Py_ssize_t _in_end
    cdef octet *_control
    cdef Py_ssize_t _control_start
    cdef Py_ssize_t _control_end
    cdef octet *_bulk
    cdef Py_ssize_t _bulk_start
    cdef Py_ssize_t _bulk_end
    cdef octet _farewell[FAREWELL_SIZE]
    cdef Py_ssize_t _farewell_size
    cdef uint32_t _next_incoming_id
    cdef uint32_t _next_outgoing_id
    cdef int64_t _window
    cdef readonly uint64_t first_ns
    cdef readonly uint64_t last_ns

    cdef bint _compose(self) noexcept nogil
    cdef bint _has_room(self) noexcept nogil
    cdef bint _is_over(self) noexcept nogil
    cdef void _after_batch(self) noexcept nogil
    cdef void _on_transfer(self, Transfer *transfer) noexcept nogil
    cdef void _on_flow(self, Flow *flow) noexcept nogil
    cdef void _on_disposition(self, Disposition *disposition) noexcept nogil

    cdef void _fail(self, const char *fault) noexcept nogil
    cdef int _settle_status(self, int status) noexcept nogil
    cdef void _tidy(self) noexcept nogil
    cdef int _step(self, bint wait) noexcept nogil
    cdef void _run(self, uint64_t until_ns) noexcept nogil
    cdef octet *_pending(self, Py_ssize_t *size) noexcept nogil
    cdef void _advance(self, Py_ssize_t size) noexcept nogil
    cdef bint _flush(self) noexcept nogil
    cdef bint _receive(self, bint wait) noexcept nogil
    cdef void _consume(self) noexcept nogil
    cdef bint _on_frame(self, Frame *frame) noexcept nogil
    cdef void _update_window(self, Flow *flow) noexcept nogil
    cdef void _part(self, Frame *frame) noexcept nogil
    cdef void _send_flow(self, int64_t handle, int64_t delivery_count, int64_t credit) noexcept nogil

"""Functions of `frame`; what is not used by other modules stands last."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.bench.layout cimport Disposition, Fields, Flow, Frame, Transfer, octet

cdef uint32_t read_u32(octet *at) noexcept nogil
cdef uint64_t read_u64(octet *at) noexcept nogil
cdef void write_u32(octet *at, uint32_t value) noexcept nogil
cdef void write_u64(octet *at, uint64_t value) noexcept nogil
cdef uint64_t mix(uint64_t word) noexcept nogil
cdef Py_ssize_t value_size(octet *at, octet *end) noexcept nogil
cdef Py_ssize_t read_list(octet *at, octet *end, Fields *fields) noexcept nogil
cdef Py_ssize_t read_frame(octet *at, octet *end, Frame *frame) noexcept nogil
cdef bint read_transfer(Frame *frame, Transfer *transfer) noexcept nogil
cdef bint read_flow(Frame *frame, Flow *flow) noexcept nogil
cdef bint read_disposition(Frame *frame, Disposition *disposition) noexcept nogil
cdef octet *find_section(octet *at, octet *end, int code) noexcept nogil
cdef octet *find_stamp(octet *at, octet *end) noexcept nogil
cdef Py_ssize_t write_flow(octet *at, int channel, Flow *flow) noexcept nogil
cdef Py_ssize_t write_accepted(octet *at, int channel, uint32_t first, uint32_t last) noexcept nogil

cdef Py_ssize_t _plain_size(octet *at, octet *end) noexcept nogil
cdef bint _read_performative(octet *at, Frame *frame) noexcept nogil
cdef bint _is_absent(Fields *fields, Py_ssize_t index) noexcept nogil
cdef int64_t _uint(Fields *fields, Py_ssize_t index) noexcept nogil
cdef bint _is_true(Fields *fields, Py_ssize_t index) noexcept nogil
cdef int _outcome(Fields *fields, Py_ssize_t index) noexcept nogil
cdef octet *_put_uint(octet *at, int64_t value) noexcept nogil
cdef octet *_put_head(octet *at, Py_ssize_t size, int channel, int code, int count) noexcept nogil

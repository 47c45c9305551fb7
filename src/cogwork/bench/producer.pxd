"""The sending role."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.bench.layout cimport MAX_DIGITS, Digits, octet
from cogwork.bench.wire cimport Wire

cdef class Producer(Wire):
    cdef octet *_block
    cdef Py_ssize_t *_frame_sizes
    cdef Py_ssize_t _frames
    cdef Py_ssize_t _frame
    cdef Py_ssize_t _image_size
    cdef Py_ssize_t _images
    cdef Py_ssize_t _image
    cdef Py_ssize_t _id_at
    cdef Py_ssize_t _tag_at
    cdef Py_ssize_t _stamp_at
    cdef Py_ssize_t _correlation_at
    cdef Digits _digits[MAX_DIGITS]
    cdef Py_ssize_t _digits_count
    cdef bint _presettled
    cdef int64_t _peer_handle
    cdef int64_t _handle
    cdef int64_t _credit
    cdef uint32_t _delivery_count
    cdef uint64_t _number
    cdef readonly uint64_t target
    cdef readonly uint64_t sent
    cdef readonly uint64_t digest
    cdef readonly uint64_t accepted
    cdef readonly uint64_t released
    cdef readonly uint64_t rejected
    cdef readonly uint64_t modified

    cdef uint64_t _allowance(self) noexcept nogil
    cdef bint _emit(self) noexcept nogil
    cdef void _patch(self, uint64_t stamp_ns) noexcept nogil
    cdef void _patch_digits(self, octet *at) noexcept nogil

"""The receiving role."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cogwork.bench.histogram cimport Histogram
from cogwork.bench.layout cimport Inlet, Transfer, octet
from cogwork.bench.wire cimport Wire

cdef class Consumer(Wire):
    cdef Inlet *_inlets
    cdef Py_ssize_t _inlets_count
    cdef int32_t *_by_handle
    cdef Py_ssize_t _handles_count
    cdef uint64_t *_expected
    cdef Py_ssize_t _producers
    cdef uint32_t _credit
    cdef Py_ssize_t _granted
    cdef bint _has_range
    cdef uint32_t _range_first
    cdef uint32_t _range_last
    cdef bint _is_timed
    cdef readonly Histogram latency
    cdef readonly uint64_t target
    cdef readonly uint64_t delivered
    cdef readonly uint64_t payload_bytes
    cdef readonly uint64_t digest
    cdef readonly uint64_t missing
    cdef readonly uint64_t repeated
    cdef readonly uint64_t aborted

    cdef void _begin(self, Inlet *inlet, Transfer *transfer) noexcept nogil
    cdef void _complete(self, Inlet *inlet) noexcept nogil
    cdef void _check(self, Inlet *inlet, octet *stamp) noexcept nogil
    cdef void _settle(self, uint32_t delivery_id) noexcept nogil
    cdef void _settle_range(self) noexcept nogil
    cdef void _grant(self, Inlet *inlet) noexcept nogil
    cdef void _on_delivery(self, Transfer *transfer) noexcept nogil

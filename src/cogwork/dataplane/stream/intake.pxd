cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.core cimport Core
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.stream.records cimport Record
from cogwork.dataplane.transport.shipment cimport Piece, Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

cdef enum:
    # Room for a producer id of the largest size.
    BEGINNING_SIZE_MAX = 160

# Deliveries of one source with consecutive tokens.
cdef struct TokenRange:
    uint64_t first
    uint32_t count


# How the last message of the record batch began: all before its body, which the next one has like it, but
# for the sequence.
cdef struct Beginning:
    uint8_t octets[BEGINNING_SIZE_MAX]
    int64_t size
    int64_t sequence_at

cdef class Intake


@cython.final
cdef class RecordBatch:
    cdef Intake intake
    cdef uint8_t* data
    cdef int64_t size
    cdef int64_t capacity
    cdef TokenRange* ranges
    cdef uint32_t ranges_count
    cdef uint32_t ranges_capacity
    cdef readonly uint32_t source_index
    cdef readonly uint32_t source_generation
    cdef readonly uint32_t count
    cdef readonly bytes producer
    cdef readonly uint64_t sequence
    cdef readonly bint is_snapshot
    cdef readonly uint64_t snapshot
    cdef bint is_settled
    cdef public object context
    cdef bint fits(self, Shipment* s, const Record* record) noexcept
    cdef int add(self, Shipment* s, const Record* record) except -1
    cdef int count_one(self, Shipment* s, int64_t size) except -1
    cdef int add_token(self, uint64_t token) except -1
    cdef uint8_t* reserve(self, int64_t size) except NULL


@cython.final
cdef class Intake(Terminus):
    cdef readonly Core core
    cdef public object handler
    cdef public AddressEntry inlet
    cdef public bint is_open
    cdef readonly int64_t pending_bytes
    cdef public int64_t pending_bytes_max
    cdef readonly uint64_t messages
    cdef readonly uint64_t refused
    cdef public uint64_t missed
    cdef public list record_batches
    cdef RecordBatch current
    cdef bint has_refused
    cdef Beginning beginning
    cdef int64_t expected_size
    cdef int close_current(self) except -1
    cdef int learn(self, const Record* record) noexcept
    cdef bint is_alike(self, Shipment* s) noexcept
    cdef int receive_alike(self, Shipment* s) except -1
    cdef bint is_full(self) noexcept
    cdef int receive(self, Shipment* s) except -1
    cdef RecordBatch begin(self, Shipment* s, const Record* record)
    cdef int reject(self, Shipment* s, bytes state) except -1
    cdef int let_go(self, int64_t size) except -1


@cython.final
cdef class CaptureOutlet(Terminus):
    cdef Intake intake

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.tables.column cimport Column, Values
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.tables.parsed cimport Parsed
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.client.stream_records cimport Records, RecordBuffer

# What a stream says of a record.
cdef struct Place:
    int64_t time_ms
    octets producer
    uint32_t producer_size
    bint has_sequence
    int64_t sequence


@cython.final
cdef class Columns:
    cdef readonly int64_t start
    cdef readonly int64_t next
    cdef readonly int64_t limit
    cdef readonly int64_t held_bytes
    cdef readonly int64_t malformed
    cdef int64_t size_max
    cdef readonly bint is_full
    cdef bytes own_mark
    # In the chunk that begins at an offset, the record `mark_next` lies so far behind the first.
    cdef int64_t mark_chunk
    cdef int64_t mark_next
    cdef int64_t mark_at
    cdef readonly Column offset
    cdef readonly Column time
    cdef readonly Column producer
    cdef readonly Column sequence
    cdef readonly Column address
    cdef readonly Column subject
    cdef readonly Column message_id
    cdef readonly Column correlation_id
    cdef readonly Column reply_to
    cdef readonly Column content_type
    cdef readonly Column properties
    cdef readonly Column keys
    cdef readonly Column values
    cdef readonly Column body
    cdef bint add_record(self, octets p, int64_t size, const Place* place) except -1
    cdef bint add_received(self, octets p, int64_t size) except -1
    cdef int put_fields(self, octets p, const Parsed* parsed) except -1
    cdef int put_properties(self, octets p, const Parsed* parsed) except -1
    cdef int put_body(self, octets p, int64_t size, const Parsed* parsed) except -1
    cdef int put_sections(self, octets p, const Parsed* parsed) except -1
    cdef int64_t add_chunk_at(self, octets p, int64_t at, int64_t end) except -1
    cdef int add_packed(self, octets p, int64_t at, int64_t end, int64_t offset, uint32_t count, Place* place) except -1
    cdef bint is_before(self, octets p, int64_t at) noexcept

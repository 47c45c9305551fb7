cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.stream.feed cimport Feed
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.transport.outgoing cimport OutgoingLink
from cogwork.dataplane.transport.session_end cimport Session
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# One message of a block: where it ends; it starts where the one before ends.
ctypedef int64_t End

# What a stream says of the records of one chunk, as the pairs of a map; offset and sequence change.
cdef struct Stamp:
    uint8_t pairs[192]
    uint32_t size
    uint32_t count


# How far a block has been sent without being encoded: the record's number in the block, its chunk,
# its number there, and where in the payload it stands.
cdef struct Place:
    uint32_t index
    Py_ssize_t chunk
    uint32_t number
    int64_t at


@cython.final
cdef class Block:
    cdef readonly uint64_t offset
    cdef readonly uint64_t next_offset
    cdef readonly int64_t size_bytes
    cdef list chunks
    cdef uint8_t* data
    cdef int64_t size
    cdef int64_t capacity
    cdef End* ends
    cdef uint32_t count
    cdef readonly bint is_encoded
    cdef readonly bint is_closed
    cdef Place place
    cdef uint32_t send_straight(self, OutgoingLink link, uint32_t index) except? 0xffffffff
    cdef uint32_t write_run(self, OutgoingLink link, tuple chunk, uint32_t count) except? 0xffffffff
    cdef int seek(self, uint32_t index) except -1
    cdef int encode(self) except -1
    cdef int encode_chunk(self, uint64_t offset, tuple chunk) except -1
    cdef int put(self, octets record, uint32_t size, const Stamp* stamp) except -1
    cdef int reserve(self, int64_t size) except -1
    cdef uint32_t send_picky(self, ConsumerEnd link, Shipment* s, uint32_t index) except? 0xffffffff

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    # A producer id is no longer.
    PRODUCER_SIZE_MAX = 64

# What is wrong with a message that is to become a record.
cdef enum:
    FINE = 0
    MALFORMED_RECORD = 1
    BAD_PRODUCER = 2
    BAD_SEQUENCE = 3
    BAD_SNAPSHOT = 4
    NO_PRODUCER = 5
    NO_SEQUENCE = 6

# An encoded message, as a stream keeps it: without delivery annotations and without what a stream
# says itself. Points into the message's bytes.
cdef struct Record:
    octets data
    # The header is in front; what follows the annotations starts at `rest`.
    int64_t head_end
    int64_t rest
    int64_t end
    # The pairs of the annotations; `kept` of them stay, `is_whole` where that is all of them.
    int64_t pairs
    int64_t pairs_end
    uint32_t kept
    int64_t kept_size
    bint is_whole
    # What its publisher says.
    octets producer
    uint32_t producer_size
    bint has_sequence
    uint64_t sequence
    # Where its eight octets stand; 0 where it is written in another way.
    int64_t sequence_at
    bint is_snapshot
    uint64_t snapshot
    # The format code of the value that is not understood, or OUT_OF_RANGE.
    uint8_t odd_code

# Says whether a message, or the rest of one, is nothing but one small data section, as most are.
cdef inline bint is_one_section(octets data, int64_t size) noexcept nogil:
    return (
        size >= 5
        and data[0] == 0x00
        and data[1] == 0x53
        and data[2] == 0x75
        and data[3] == 0xA0
        and data[4] + 5 == size
    )

cdef int read_record(octets data, int64_t size, Record* record) noexcept nogil
cdef int64_t record_size(const Record* record) noexcept nogil
cdef uint8_t* write_record(uint8_t* p, const Record* record) noexcept nogil
cdef uint8_t* write_pairs(uint8_t* p, const Record* record) noexcept nogil

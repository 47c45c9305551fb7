"""C layouts and constants of the load generator: a declaration file without a module."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from *:
    const char *COGWORK_SOURCE_HASH

ctypedef unsigned char octet

cdef enum:
    MAX_FIELDS = 16
    MALFORMED = -2
    ABSENT = -1
    FLOW_SIZE = 49
    DISPOSITION_SIZE = 30
    STAMP_SIZE = 16

cdef enum:
    CODE_EMPTY = 0x00
    CODE_OPEN = 0x10
    CODE_BEGIN = 0x11
    CODE_ATTACH = 0x12
    CODE_FLOW = 0x13
    CODE_TRANSFER = 0x14
    CODE_DISPOSITION = 0x15
    CODE_DETACH = 0x16
    CODE_END = 0x17
    CODE_CLOSE = 0x18
    CODE_RECEIVED = 0x23
    CODE_ACCEPTED = 0x24
    CODE_REJECTED = 0x25
    CODE_RELEASED = 0x26
    CODE_MODIFIED = 0x27
    SECTION_PROPERTIES = 0x73
    SECTION_DATA = 0x75
    SECTION_VALUE = 0x77

cdef struct Fields:
    octet *at[MAX_FIELDS]
    Py_ssize_t count
    octet *end

cdef struct Frame:
    Py_ssize_t size
    int channel
    int code
    Fields fields
    octet *end

cdef struct Transfer:
    int64_t handle
    int64_t delivery_id
    bint settled
    bint more
    bint aborted
    octet *payload
    Py_ssize_t payload_size

cdef struct Flow:
    int64_t next_incoming_id
    int64_t incoming_window
    int64_t next_outgoing_id
    int64_t outgoing_window
    int64_t handle
    int64_t delivery_count
    int64_t link_credit
    bint echo

cdef struct Disposition:
    bint receiver
    int64_t first
    int64_t last
    bint settled
    int outcome

cdef enum:
    STATUS_BUSY = 0
    STATUS_IDLE = 1
    STATUS_BLOCKED = 2
    STATUS_OVER = 3
    STATUS_FAILED = 4

cdef enum:
    INCOMING_SIZE = 512 * 1024
    READ_SIZE = 256 * 1024
    CONTROL_SIZE = 64 * 1024
    FAREWELL_SIZE = 1024
    BLOCK_SIZE = 256 * 1024
    MAX_DIGITS = 4
    REPLY_ROOM = 64
    SUB_BITS = 6
    BUCKETS = 64 << SUB_BITS

cdef struct Digits:
    Py_ssize_t at
    uint64_t modulus
    uint64_t stride
    uint64_t carry

cdef struct Inlet:
    int64_t handle
    uint32_t delivery_count
    uint32_t used
    uint32_t delivery_id
    bint is_settled
    bint is_partial
    uint64_t *expected

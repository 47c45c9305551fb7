# What the parts of the data plane hand to each other about a delivery, and how it is filled in.

from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.encoding.octets cimport bytes_from, octets, octets_of

cdef extern from *:
    """
    #define COGWORK_NOWHERE 0xFFFFFFFFu
    """
    # An index that names no terminus.
    const uint32_t NOWHERE "COGWORK_NOWHERE"

cdef enum:
    # The most deliveries that are handed on together.
    RUN_MAX = 256
    # The bit of a message-format that says between containers that a message was acquired before.
    ACQUIRED_BEFORE = 1
    # An outcome's descriptor code; LOST where the link went before one came.
    LOST = 0x01
    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27

# A message on its way from a source to one terminus; valid for the length of one call.
cdef struct Shipment:
    octets data
    uint32_t size
    uint32_t format
    bint settled
    # Whether a consumer was given it before.
    bint acquired
    uint32_t source_index
    uint32_t source_generation
    uint64_t token
    octets tag
    uint32_t tag_size
    uint32_t origin
    uint32_t via_index
    uint32_t via_generation

# One single-frame delivery of a run.
cdef struct Piece:
    octets data
    uint32_t size
    uint64_t token

# What a receiver says of one delivery.
cdef struct Verdict:
    int code
    octets state
    uint32_t state_size
    bint settled

# A message on its way, settled or not, that nobody is to be told about.
cdef inline void fill_shipment(Shipment* s, octets data, uint32_t size) noexcept nogil:
    s.data = data
    s.size = size
    s.format = 0
    s.settled = False
    s.acquired = False
    s.source_index = NOWHERE
    s.source_generation = 0
    s.token = 0
    s.tag = NULL
    s.tag_size = 0
    s.origin = 0
    s.via_index = NOWHERE
    s.via_generation = 0

# An outcome that settles; `state` is the encoded one where there is more to say than its code.
cdef inline void fill_verdict(Verdict* verdict, int code, bytes state) noexcept:
    verdict.code = code
    verdict.state = NULL
    verdict.state_size = 0
    verdict.settled = True
    if state is not None:
        verdict.state = octets_of(state)
        verdict.state_size = <uint32_t>len(state)

# The state's bytes; None where there is none.
cdef inline bytes state_of(const Verdict* verdict):
    return None if verdict.state == NULL else bytes_from(verdict.state, verdict.state_size)

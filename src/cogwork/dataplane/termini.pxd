# What passes from terminus to terminus, filled in. All inline, beside `core`.

from libc.stdint cimport uint32_t

from cogwork.dataplane.core cimport Shipment, Verdict
from cogwork.dataplane.octets cimport bytes_from, octets, octets_of

cdef extern from *:
    """
    #define COGWORK_NOWHERE 0xFFFFFFFFu
    """
    # An index that names no terminus.
    const uint32_t NOWHERE "COGWORK_NOWHERE"

# A message on its way, settled or not, that nobody is to be told about.
cdef inline void fill_shipment(Shipment* s, octets data, uint32_t size) noexcept nogil:
    s.data = data
    s.size = size
    s.format = 0
    s.settled = False
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

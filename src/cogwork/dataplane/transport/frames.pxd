# The frames that the data plane writes itself. All of it is inline.

from libc.stdint cimport uint8_t, uint32_t

from cogwork.dataplane.encoding.octets cimport store_u16, store_u32

cdef enum:
    # No performative written here is larger, without a state or payload.
    HEADER_ROOM_BYTES = 96

# Starts a frame whose performative is a list8; `end_performative` fills in both sizes.
cdef inline uint8_t* put_performative(uint8_t* p, uint32_t channel, uint8_t code, uint8_t count) noexcept nogil:
    p[4] = 2
    p[5] = 0
    store_u16(p + 6, <unsigned short>channel)
    p[8] = 0x00
    p[9] = 0x53
    p[10] = code
    p[11] = 0xC0
    p[13] = count
    return p + 14

# Returns the size of the whole frame.
cdef inline uint32_t end_performative(uint8_t* frame, const uint8_t* end, uint32_t payload_size) noexcept nogil:
    cdef uint32_t header_size = <uint32_t>(end - frame)
    frame[12] = <uint8_t>(header_size - 13)
    store_u32(frame, header_size + payload_size)
    return header_size + payload_size

cdef inline uint8_t* put_bool(uint8_t* p, bint value) noexcept nogil:
    p[0] = 0x41 if value else 0x42
    return p + 1

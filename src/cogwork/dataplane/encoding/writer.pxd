from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from cogwork.dataplane.encoding.octets cimport (
    bytes_from,
    octets,
    store_uint,
    store_u16,
    store_u32,
    store_u64,
)
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef enum:
    SMALL_BYTES = 512
    # Code, size and count of a wide compound.
    COMPOUND_HEADER_BYTES = 9

cdef struct Writer:
    uint8_t* data
    Py_ssize_t size
    Py_ssize_t capacity
    uint8_t[SMALL_BYTES] small

cdef int enlarge(Writer* out, Py_ssize_t more) except -1
cdef int refuse_size(Py_ssize_t size) except -1
cdef int end_compound(Writer* out, Py_ssize_t start, uint8_t small_code, Py_ssize_t count) except -1

cdef inline void open_writer(Writer* out) noexcept nogil:
    out.data = out.small
    out.size = 0
    out.capacity = SMALL_BYTES

cdef inline void close_writer(Writer* out) noexcept nogil:
    if out.data != out.small:
        free(out.data)

cdef inline bytes written(Writer* out):
    return bytes_from(out.data, out.size)

# Makes room for `more` bytes.
cdef inline int grow(Writer* out, Py_ssize_t more) except -1:
    return enlarge(out, more) if more > out.capacity - out.size else 0

cdef inline int put_byte(Writer* out, uint8_t byte) except -1:
    grow(out, 1)
    out.data[out.size] = byte
    out.size += 1
    return 0

cdef inline int put_bytes(Writer* out, const void* data, Py_ssize_t size) except -1:
    grow(out, size)
    memcpy(out.data + out.size, data, size)
    out.size += size
    return 0

cdef inline int put_u8(Writer* out, uint8_t code, uint8_t number) except -1:
    grow(out, 2)
    out.data[out.size] = code
    out.data[out.size + 1] = number
    out.size += 2
    return 0

cdef inline int put_u16(Writer* out, uint8_t code, uint16_t number) except -1:
    grow(out, 3)
    out.data[out.size] = code
    store_u16(out.data + out.size + 1, number)
    out.size += 3
    return 0

cdef inline int put_u32(Writer* out, uint8_t code, uint32_t number) except -1:
    grow(out, 5)
    out.data[out.size] = code
    store_u32(out.data + out.size + 1, number)
    out.size += 5
    return 0

cdef inline int put_u64(Writer* out, uint8_t code, uint64_t number) except -1:
    grow(out, 9)
    out.data[out.size] = code
    store_u64(out.data + out.size + 1, number)
    out.size += 9
    return 0

# Writes a uint in its shortest form.
cdef inline int put_uint(Writer* out, uint32_t number) except -1:
    grow(out, 5)
    out.size = store_uint(out.data + out.size, number) - out.data
    return 0

# Writes the descriptor of a composite or a section.
cdef inline int put_descriptor(Writer* out, uint8_t code) except -1:
    grow(out, 3)
    out.data[out.size] = 0x00
    out.data[out.size + 1] = 0x53
    out.data[out.size + 2] = code
    out.size += 3
    return 0

# Writes binary, string or symbol; the wide form's code is 0x10 above the small one's.
cdef inline int put_variable(Writer* out, uint8_t small_code, const void* data, Py_ssize_t size) except -1:
    grow(out, size + 5)
    if size <= 0xFF:
        put_u8(out, small_code, <uint8_t>size)
    else:
        if size >> 32:
            refuse_size(size)
        put_u32(out, small_code + 0x10, <uint32_t>size)
    memcpy(out.data + out.size, data, size)
    out.size += size
    return 0

# Leaves room for a wide header; returns where it starts.
cdef inline Py_ssize_t begin_compound(Writer* out) except -1:
    grow(out, COMPOUND_HEADER_BYTES)
    out.size += COMPOUND_HEADER_BYTES
    return out.size - COMPOUND_HEADER_BYTES

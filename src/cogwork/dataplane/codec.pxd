from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH

ctypedef const unsigned char* Octets

cdef struct Writer:
    unsigned char* data
    Py_ssize_t size
    Py_ssize_t capacity
    unsigned char[512] small

cdef struct Reader:
    Octets data
    Py_ssize_t at
    Py_ssize_t end

# Python objects that the hot path compares with or calls: C globals, not module lookups.
cdef int DEPTH_MAX
cdef Py_ssize_t EMPTY_ITEMS_MAX
cdef object Array, Byte, Char, Described, Float32, Int, Short, Symbol, Timestamp
cdef object UByte, UInt, ULong, UShort
cdef object EPOCH, UUID, datetime, NoneType
cdef object new_int, new_uuid, set_uuid_int, set_uuid_safety, UNKNOWN_SAFETY
cdef list SMALL_UBYTES, SMALL_UINTS, SMALL_ULONGS, SYMBOLS
cdef dict ELEMENT_TYPES

# --- writing ---

cdef void open_writer(Writer* out) noexcept nogil
cdef void close_writer(Writer* out) noexcept nogil
cdef bytes written(Writer* out)
cdef int grow(Writer* out, Py_ssize_t more) except -1
cdef int put_byte(Writer* out, unsigned char byte) except -1
cdef int put_bytes(Writer* out, const void* data, Py_ssize_t size) except -1
cdef int put_u32(Writer* out, unsigned char code, uint32_t number) except -1
cdef int put_u64(Writer* out, unsigned char code, uint64_t number) except -1
cdef int put_variable(Writer* out, unsigned char small_code, const void* data, Py_ssize_t size) except -1
cdef int put_text(Writer* out, object text) except -1
cdef int put_symbol(Writer* out, object text) except -1
cdef int put_value(Writer* out, object value, int depth) except -1
cdef int put_list(Writer* out, list items, int depth) except -1
cdef int put_names(Writer* out, tuple names) except -1
cdef int put_map(Writer* out, dict entries, int depth) except -1
cdef Py_ssize_t begin_compound(Writer* out) except -1
cdef int end_compound(Writer* out, Py_ssize_t start, unsigned char small_code, Py_ssize_t count) except -1

# --- reading ---

cdef Octets take(Reader* source, Py_ssize_t size) except NULL
cdef object read_value(Reader* source, int depth)
cdef object text_from(Octets data, Py_ssize_t size)
cdef object symbol_from(Octets data, Py_ssize_t size)
cdef uint32_t load_u32(Octets data) noexcept nogil
cdef uint64_t load_u64(Octets data) noexcept nogil

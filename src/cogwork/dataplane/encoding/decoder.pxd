from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef struct Reader:
    octets data
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

cdef octets take(Reader* source, Py_ssize_t size) except NULL
cdef object read_value(Reader* source, int depth)

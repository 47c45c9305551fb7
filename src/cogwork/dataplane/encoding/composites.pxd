from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.encoding.writer cimport Writer

# How a field is written.
cdef enum:
    CONVERTED = 0
    AS_IS = 1
    UNSIGNED_32 = 2
    TEXT = 3
    FLAG = 4
    NESTED = 5
    NAME = 6
    NAMES = 7
    NAMED = 8

cdef object Described, Symbol, ULong
cdef dict PLANS, COMPOSITES, WRITINGS

cdef class Row:
    cdef str attribute
    cdef int writing
    cdef object default
    cdef bint is_mandatory
    cdef frozenset wire_types
    cdef object to_wire
    cdef object from_wire
    cdef frozenset members

cdef class Plan:
    cdef object made
    cdef object new
    cdef list rows
    cdef unsigned char code
    cdef str name

cdef Plan plan_of(object composite_class)
cdef int put_composite(Writer* out, object composite, int depth) except -1
cdef object composite_of(object described)

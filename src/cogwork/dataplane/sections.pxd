from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.codec cimport Octets

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH

# What the finders return.
cdef enum:
    MALFORMED = -1
    ABSENT = 0
    FOUND = 1

# Descriptors of the sections.
cdef enum:
    HEADER = 0x70
    DELIVERY_ANNOTATIONS = 0x71
    MESSAGE_ANNOTATIONS = 0x72
    PROPERTIES = 0x73
    APPLICATION_PROPERTIES = 0x74
    DATA = 0x75
    SEQUENCE = 0x76
    VALUE = 0x77
    FOOTER = 0x78

# Ranks: the place of a section in the order that the specification gives; bodies share one.
cdef enum:
    HEADER_RANK = 0
    DELIVERY_ANNOTATIONS_RANK = 1
    MESSAGE_ANNOTATIONS_RANK = 2
    PROPERTIES_RANK = 3
    APPLICATION_PROPERTIES_RANK = 4
    BODY_RANK = 5
    FOOTER_RANK = 6
    RANKS = 7

# Fields of the properties section.
cdef enum:
    MESSAGE_ID_FIELD = 0
    USER_ID_FIELD = 1
    TO_FIELD = 2
    SUBJECT_FIELD = 3
    REPLY_TO_FIELD = 4
    CORRELATION_ID_FIELD = 5
    CONTENT_TYPE_FIELD = 6
    CONTENT_ENCODING_FIELD = 7
    ABSOLUTE_EXPIRY_TIME_FIELD = 8
    CREATION_TIME_FIELD = 9
    GROUP_ID_FIELD = 10
    GROUP_SEQUENCE_FIELD = 11
    REPLY_TO_GROUP_ID_FIELD = 12
    PROPERTY_FIELDS = 13

cdef struct Span:
    Octets start
    Py_ssize_t size

# One section: where its descriptor starts, where its value starts, where both end.
cdef struct Section:
    Py_ssize_t start
    Py_ssize_t value
    Py_ssize_t end

cdef struct Layout:
    Section[7] sections
    unsigned char body_code
    Py_ssize_t body_sections

cdef struct HeaderFields:
    bint durable
    unsigned char priority
    bint has_ttl
    uint32_t ttl_ms
    bint first_acquirer
    uint32_t delivery_count
    Py_ssize_t section_size

cdef int locate(Octets data, Py_ssize_t size, Layout* layout) noexcept nogil
cdef int next_section(Octets data, Py_ssize_t size, Py_ssize_t at, Section* section) noexcept nogil
cdef int read_header(Octets data, Py_ssize_t size, HeaderFields* fields) noexcept nogil
cdef int find_property(Octets data, Py_ssize_t size, int field, Span* found) noexcept nogil
cdef int find_to(Octets data, Py_ssize_t size, Span* found) noexcept nogil
cdef int find_subject(Octets data, Py_ssize_t size, Span* found) noexcept nogil
cdef int find_group_id(Octets data, Py_ssize_t size, Span* found) noexcept nogil
cdef int find_message_id(Octets data, Py_ssize_t size, Span* found) noexcept nogil
cdef int find_body(Octets data, Py_ssize_t size, Span* found) noexcept nogil

cdef Py_ssize_t skip_value(Octets data, Py_ssize_t at, Py_ssize_t end) noexcept nogil
cdef Py_ssize_t enter_list(Octets data, Py_ssize_t at, Py_ssize_t* end, Py_ssize_t* count) noexcept nogil
cdef int text_in(Span* value) noexcept nogil
cdef int rank_of(int code) noexcept nogil

from libc.stdint cimport int64_t, uint8_t, uint32_t

from cogwork.dataplane.message.header cimport Header
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

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

# One section: where its descriptor starts, where its value starts, where both end.
cdef struct Section:
    int64_t start
    int64_t value
    int64_t end

cdef struct Layout:
    Section[7] sections
    uint8_t body_code
    int64_t body_sections

cdef int rank_of(int code) noexcept nogil
cdef int locate(octets data, int64_t size, Layout* layout) noexcept nogil
cdef int next_section(octets data, int64_t size, int64_t at, Section* section) noexcept nogil
cdef int find_header(octets data, int64_t size, Header* header) noexcept nogil
cdef int find_to(octets data, int64_t size, octets* value, uint32_t* value_size) noexcept nogil

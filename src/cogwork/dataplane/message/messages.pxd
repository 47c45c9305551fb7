cimport cython

from cogwork.dataplane.message.header cimport Header
from cogwork.dataplane.message.sections cimport Layout
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef class PropertyField:
    cdef int index

@cython.freelist(64)
cdef class Message:
    # What it was decoded from, where its sections lie in that, which of them (one bit a rank) have
    # not been decoded yet, and whether nothing was decoded or changed.
    cdef bytes _raw
    cdef Layout _layout
    cdef unsigned int _pending
    cdef bint _is_intact

    # Whether it was said if it is durable; else that is up to who sends it.
    cdef bint _says_durable

    cdef Header _header
    cdef list _fields
    cdef dict _delivery_annotations
    cdef dict _annotations
    cdef dict _properties
    cdef dict _footer

    # The section code; one bytes for DATA, one value for VALUE, else the list of the parts.
    cdef unsigned char _body_code
    cdef object _body

    cdef int open_section(self, int rank) except -1
    cdef object field(self, int index)
    cdef int set_field(self, int index, object value) except -1
    cdef int set_body(self, object body) except -1
    cdef int set_ttl(self, object ttl_s) except -1

cdef Message message_from(bytes raw)

cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(object)
    void PyObject_GC_UnTrack(object)
    void PyObject_GC_Track(object)

# A message that holds nothing but bytes is in no cycle: the collector need not look at thousands
# of them that wait. It is looked at again once somebody has opened what could be put into one.
cdef inline void hide(Message message) noexcept:
    PyObject_GC_UnTrack(message)

cdef inline void show(Message message) noexcept:
    if not PyObject_GC_IsTracked(message):
        PyObject_GC_Track(message)

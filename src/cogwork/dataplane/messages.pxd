from cogwork.dataplane.contents cimport Contents
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef class PropertyField:
    cdef int index

cdef class Message(Contents):
    pass

cdef Message message_from(bytes raw)
cdef bytes encoded(object body)

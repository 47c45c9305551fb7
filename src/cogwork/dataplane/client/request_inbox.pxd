from cogwork.dataplane.client.inbox cimport Inbox
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


cdef class RequestInbox(Inbox):
    pass

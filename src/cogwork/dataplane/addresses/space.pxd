cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH


@cython.final
cdef class AddressSpace:
    cdef readonly Core core
    cdef readonly dict entries
    cdef public object resolver
    cdef public bytes topic_prefix
    cdef public AddressEntry topic_root
    cdef public tuple topic_exceptions
    cdef public uint64_t unroutable
    cdef public object meaning
    cdef readonly object asker
    cdef AddressEntry find(self, bytes address)
    cdef AddressEntry resolve_for(self, bytes address, object asker)

    # Returns the entry of an address that messages have gone to; None: it has to be resolved.
    cdef inline AddressEntry known(self, bytes address):
        cdef AddressEntry entry = self.entries.get(address)
        return entry if entry is not None and entry.is_used else None

    # Says whether a topic's root serves a subject: no rule of its own may hold for it.
    cdef inline bint is_of_root(self, const unsigned char* subject, uint32_t size):
        cdef bytes word
        cdef uint32_t length
        if self.topic_exceptions is None:
            return True
        for word in self.topic_exceptions:
            length = <uint32_t>len(word)
            if length == 0:
                return False
            if size >= length and memcmp(subject, <const char*>word, length) == 0:
                if size == length or subject[length] == 0x2E or subject[length] == 0x2F:
                    return False
        return True

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from cogwork.dataplane.transport.credit cimport CreditingEnd
from cogwork.dataplane.transport.delivery cimport Delivery
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.transport.scan cimport TransferFields
from cogwork.dataplane.transport.shipment cimport Shipment
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.addresses.space cimport AddressSpace
from cogwork.dataplane.terminus cimport Terminus


cdef class FragmentingEnd(CreditingEnd):
    cdef readonly AddressSpace space
    cdef public object permit
    # Answers for messages that lead nowhere, as (link, delivery-id, address); None releases them.
    cdef public object refuser
    cdef uint64_t max_message_size
    cdef bint in_delivery
    cdef bint current_settled
    cdef uint32_t current_id
    cdef uint8_t[32] current_tag
    cdef uint32_t current_tag_size
    cdef bint current_answered
    cdef uint64_t current_size
    # The delivery that was under way when somebody looked last, by its number, and since when it was.
    cdef uint64_t watched_delivery
    cdef double watched_since_s
    cdef AddressEntry current_entry
    cdef bytes current_address
    # A message of several frames, while it is routed: who wants it as an object need not copy it.
    cdef bytes joined
    cdef int route(self, Shipment* s) except -1
    cdef int on_fragment(self, TransferFields* t) except -1
    cdef object _too_large(self)
    cdef bytes meant(self, octets data, uint32_t size, octets found, uint32_t length)
    cdef bint _has_no_room(self, uint32_t size) except -1
    cdef int _start_fragments(self, TransferFields* t) except -1
    cdef bint _may_say_more(self, octets data, uint32_t size) except -1
    cdef bint needs_whole(self, AddressEntry entry, octets data, uint32_t size) except -1
    cdef void _describe(self, Shipment* s, TransferFields* t) noexcept
    cdef int start_streaming(self, AddressEntry entry, TransferFields* t) except -1
    cdef int _stream_multicast(self, AddressEntry entry, Shipment* s) except -1
    cdef object _refused(self, Terminus outlet, Shipment* s)
    cdef int forward_fragment(self, Delivery* d, octets data, uint32_t size) except -1
    cdef int finish_delivery(self) except -1
    cdef int _route_assembled(self, Delivery* d) except -1
    cdef int abort_delivery(self) except -1
    cdef void _disown(self, Delivery* d) noexcept
    cdef bytes address_in(self, octets data, uint32_t size)
    cdef int turn_away(self, uint64_t token, bint settled, bytes address) except -1
    cdef AddressEntry choose_entry(self, octets data, uint32_t size)
    cdef int reply(self, uint64_t token, int code, bint settled) except -1

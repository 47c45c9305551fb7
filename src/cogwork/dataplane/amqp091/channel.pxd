cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.addresses.entry cimport AddressEntry
from cogwork.dataplane.amqp091.confirms cimport Confirms
from cogwork.dataplane.amqp091.wire cimport BasicWire, DirectChannel
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.message.basic cimport BasicParts
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus
from cogwork.dataplane.transport.consumer_end cimport ConsumerEnd
from cogwork.dataplane.transport.shipment cimport Shipment, Verdict
from cogwork.dataplane.transport.unsettled cimport Sent, UnsettledRing

# The two name each other: this one is to be known before the other is read.
cdef class BasicChannel(DirectChannel)


# A message of at most so many octets is put together on the stack.
cdef enum:
    SMALL_BYTES = 4096

# Where the parts of a published message stand in its frames.
cdef struct Content:
    octets route
    uint32_t route_size
    octets properties
    uint32_t properties_size
    octets body_frames
    uint32_t body_size


@cython.final
cdef class BasicConsumer(ConsumerEnd):
    cdef readonly BasicChannel channel
    cdef readonly bytes tag
    cdef readonly uint32_t prefetch
    cdef readonly bint is_get
    cdef public uint32_t message_count
    # It takes nothing more; what it has is settled by its channel.
    cdef readonly bint is_cancelled
    cdef bint is_stalled
    cdef bint is_starved
    cdef int starve(self) except -1
    cdef int became_ready(self) except -1
    cdef int regain(self) except -1
    cdef int end(self) except -1
    cdef int write(self, BasicParts* parts, bint redelivered) except -1
    cdef uint8_t* put_method(self, uint8_t* p, BasicParts* parts, bint redelivered) noexcept


@cython.final
cdef class BasicChannel(DirectChannel):
    cdef readonly Core core
    cdef readonly BasicWire wire
    cdef UnsettledRing sent
    cdef readonly uint64_t last_tag
    cdef uint32_t prefetch_count
    # What its consumers have unacknowledged; basic.get is not bounded by the prefetch, nor counts.
    cdef uint64_t prefetched
    cdef bint stopped
    # Those that found that there is no credit for them.
    cdef list starved
    cdef dict consumers
    cdef list outcomes
    cdef Confirms confirms
    # Where messages go without asking the owner: by route, or by exchange alone.
    cdef dict allowed
    cdef bytes last_route
    cdef AddressEntry last_entry
    # The message that is being routed, by its token, and what was said of it meanwhile.
    cdef uint64_t routed_token
    cdef int routed_code
    cdef int64_t take_ack(self, octets data) except? -2
    cdef int64_t take_publish(self, octets data, int64_t size) except? -2
    cdef AddressEntry entry_for(self, octets route, uint32_t size, uint32_t exchange_size)
    cdef int64_t measure_body(self, octets data, int64_t size, uint64_t body_size) noexcept
    cdef int route_content(self, AddressEntry entry, Content* content) except -1
    cdef bint has_room(self) noexcept
    cdef int track(self, BasicConsumer consumer, Shipment* s) except -1
    cdef int settle_one(self, uint64_t tag, Verdict* verdict) except -1
    cdef int64_t settle_up_to(self, uint64_t tag, Verdict* verdict) except -1
    cdef int64_t settle_spilled(self, uint32_t last, Verdict* verdict) except -1
    cpdef bint holds(self, uint64_t tag) except -1
    cdef int answer(self, Sent* sent, uint32_t count, Verdict* verdict) except -1
    cdef int wake(self) except -1

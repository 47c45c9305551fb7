# Deliveries in order, in a ring that grows by doubling.

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc

from cogwork.dataplane.transport.delivery cimport Delivery

cdef enum:
    RING_CAPACITY_MIN = 4

# The capacity is a power of two, or 0 before the first delivery.
cdef struct DeliveryRing:
    Delivery** slots
    uint32_t capacity
    uint32_t first
    uint32_t count

cdef inline Delivery* ring_at(const DeliveryRing* ring, uint32_t index) noexcept nogil:
    return ring.slots[(ring.first + index) & (ring.capacity - 1)]

cdef inline bint ring_grow(DeliveryRing* ring) noexcept nogil:
    cdef uint32_t capacity = ring.capacity * 2 if ring.capacity else RING_CAPACITY_MIN
    cdef uint32_t index
    cdef Delivery** grown = <Delivery**>malloc(capacity * sizeof(Delivery*))
    if grown == NULL:
        return False
    for index in range(ring.count):
        grown[index] = ring_at(ring, index)
    free(ring.slots)
    ring.slots = grown
    ring.capacity = capacity
    ring.first = 0
    return True

# Says whether there was memory for it.
cdef inline bint ring_append(DeliveryRing* ring, Delivery* d) noexcept nogil:
    if ring.count == ring.capacity and not ring_grow(ring):
        return False
    ring.slots[(ring.first + ring.count) & (ring.capacity - 1)] = d
    ring.count += 1
    return True

cdef inline void ring_drop_first(DeliveryRing* ring) noexcept nogil:
    ring.first = (ring.first + 1) & (ring.capacity - 1)
    ring.count -= 1

# Takes out the one behind the first, which stays the first.
cdef inline Delivery* ring_take_second(DeliveryRing* ring) noexcept nogil:
    cdef uint32_t at = (ring.first + 1) & (ring.capacity - 1)
    cdef Delivery* d = ring.slots[at]
    ring.slots[at] = ring.slots[ring.first]
    ring_drop_first(ring)
    return d

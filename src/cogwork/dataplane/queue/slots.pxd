cimport cython
from libc.stdint cimport uint32_t, uint64_t

from cogwork.dataplane.queue.chain cimport Node
from cogwork.dataplane.encoding.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stored cimport OUT, Item

cdef enum:
    SPARE_SIZES = 16
    SPARE_STEP = 64
    SPARE_MAX = 8192

# What stands for the next free slot where an item has its slot, and lies on disk.
cdef enum:
    IS_PAGED = 0xFFFFFFFE

# How items are found again: an index, and a stamp that changes with every attempt and every item.
cdef struct Slot:
    Item* item
    uint32_t stamp
    uint32_t next_free

cdef inline uint64_t spare_size_of(uint32_t size) noexcept nogil:
    return (sizeof(Item) + <uint64_t>size) // SPARE_STEP


@cython.final
cdef class Slots:
    cdef Slot* slots
    cdef uint32_t size
    cdef uint32_t capacity
    cdef uint32_t free_first
    cdef uint32_t free_last
    cdef Node* spare[SPARE_SIZES]
    cdef uint32_t spare_count
    cdef uint32_t first_stamp
    cdef Item* make(self, octets data, uint32_t size) except NULL
    cdef Item* make_again(self, uint64_t number, octets data, uint32_t size) except NULL
    cdef Item* replace(self, Item* item, octets data, uint32_t size) except NULL
    cdef void settle(self, uint32_t first_stamp) noexcept
    cdef uint32_t highest_stamp(self) noexcept
    cdef void drop(self, Item* item) noexcept
    cdef Item* next_item(self, uint32_t* slot) noexcept
    cdef Item* next_item_before(self, uint32_t* slot, uint32_t end) noexcept
    cdef void page_out(self, Item* item) noexcept
    cdef Item* page_in(self, uint64_t number, octets data, uint32_t size) except NULL
    cdef bint reserve(self, uint64_t number) except -1
    cdef void drop_paged(self, uint64_t number) noexcept
    cdef Item* _put_block(self, uint64_t number, octets data, uint32_t size) except NULL
    cdef Item* _new_block(self, uint32_t size) except NULL
    cdef void _free_block(self, Item* item) noexcept
    cdef void _free_slot(self, uint32_t slot) noexcept
    cdef int _add_to(self, uint64_t size) except -1

    # Makes a new token for an item; the one it had before finds nothing any more.
    cdef inline uint64_t stamp(self, Item* item) noexcept:
        self.slots[item.slot].stamp += 1
        return (<uint64_t>self.slots[item.slot].stamp << 32) | item.slot

    # Finds an item that is out by its newest token; NULL where it is stale.
    cdef inline Item* current(self, uint64_t token) noexcept:
        cdef uint32_t slot = <uint32_t>token
        cdef Item* item
        if slot >= self.size or self.slots[slot].stamp != <uint32_t>(token >> 32):
            return NULL
        item = self.slots[slot].item
        return item if item != NULL and item.state == OUT else NULL

    # Finds an item by the number it has for life; NULL where it has gone.
    cdef inline Item* find(self, uint64_t number) noexcept:
        cdef uint32_t slot = <uint32_t>number
        cdef Item* item
        if slot >= self.size:
            return NULL
        item = self.slots[slot].item
        return item if item != NULL and item.birth == <uint32_t>(number >> 32) else NULL

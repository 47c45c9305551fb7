# What an item table stores: items, their groups, and the state of each consumer.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from cogwork.dataplane.queue.chain cimport Node

# A queue tells so many priorities apart at most, and so many words have a bit for each.
cdef enum:
    PRIORITIES_MAX = 256
    PRIORITY_WORDS = 4

# Where an item stands.
cdef enum:
    READY = 0
    PARKED = 1
    DELAYED = 2
    RETURNED = 3
    OUT = 4
    IN_DOUBT = 5
    ASIDE = 6
    PAGED = 7

# What is known of an item, as bits of `flags`. One whose group is detached is in doubt for so
# long that the others of the group go on without it.
cdef enum:
    ACQUIRED = 1
    HANDED = 2
    MARKS = 4
    EXCLUDED = 8
    AGES = 16
    PRESETTLED = 32
    LEASED = 64
    GROUP_DETACHED = 128

# What becomes of an item as its queue is more than memory may hold: its page is being written; or it
# is the first one that came from a page, so that the next page is fetched as it leaves.
cdef enum:
    AT_REST = 0
    IS_WRITTEN = 1
    IS_FIRST_OF_PAGE = 2

# One message, with its bytes behind it; the node comes first, so that a list's nodes are items. Its
# sequence is its place in the queue; while it is delayed, that among all that ever were. Failures
# and acquisitions are attempts that ended without an acceptance: counted ones, and those that gave
# the item back uncounted although a consumer may have seen it. One whose state is PAGED stands for
# all of a page among the ready: its sequence is that of the last of them, and `group_key` names the
# page.
cdef struct Item:
    Node node
    uint64_t sequence
    uint64_t group_key
    Group* group
    double stored_s
    double expires_s
    double due_s
    uint32_t slot
    uint32_t birth
    uint32_t attempt
    uint32_t failures
    uint32_t acquisitions
    uint32_t size
    uint32_t format
    uint32_t origin
    uint32_t consumer
    uint32_t pins
    uint8_t priority
    uint8_t state
    uint8_t flags
    uint8_t paging
    uint8_t data[1]

# Items with one ordering key; the node comes first. At most one of them stands among the ready.
cdef struct Group:
    Node node
    Node parked
    Node* hint
    ConsumerState* holder
    Item* head
    Group* next
    uint64_t key
    uint32_t out
    uint32_t count

# What one consumer has: items in flight, the groups it owns, and those that wait for it alone.
cdef struct ConsumerState:
    void* owner
    Node in_flight
    Node owned_groups
    Node waiting_groups

# The number that an item has for life.
cdef inline uint64_t number_of(Item* item) noexcept nogil:
    return (<uint64_t>item.birth << 32) | item.slot

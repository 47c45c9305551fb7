cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from cogwork.dataplane.octets cimport octets
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.timers cimport Timer, TimerHeap

cdef enum:
    PRIORITIES = 10
    SPARE_SIZES = 16
    SPARE_STEP = 64
    SPARE_MAX = 8192

# Where an item stands.
cdef enum:
    READY = 0
    PARKED = 1
    DELAYED = 2
    RETURNED = 3
    OUT = 4
    DOUBT = 5

# What is known of an item, as bits of `flags`.
cdef enum:
    ACQUIRED = 1
    HANDED = 2
    MARKS = 4
    EXCLUDED = 8
    AGES = 16
    PRESETTLED = 32

# A place in a circular list; `next` is NULL where it is in none.
cdef struct Node:
    Node* next
    Node* prev

# One message, with its bytes behind it; the node comes first, so that a list's nodes are items.
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
    uint32_t size
    uint32_t format
    uint32_t origin
    uint32_t consumer
    uint32_t pins
    uint8_t priority
    uint8_t state
    uint8_t flags
    uint8_t data[1]

# How items are found again: an index, and a stamp that changes with every attempt and every item.
cdef struct Slot:
    Item* item
    uint32_t stamp
    uint32_t next_free

# Items with one ordering key; the node comes first. At most one of them stands among the ready.
cdef struct Group:
    Node node
    Node parked
    Node* hint
    Hands* holder
    Item* head
    Group* next
    uint64_t key
    uint32_t out
    uint32_t count

# One consumer's end: what is out at it, the groups it holds, and those that wait for it alone.
cdef struct Hands:
    void* owner
    Node out
    Node held
    Node wanting

# How far a selective consumer or a browser has looked, for each priority.
cdef struct Cursor:
    Item* at[10]
    uint64_t seen[10]
    bint rewinds

cdef inline void clear(Node* head) noexcept nogil:
    head.next = head
    head.prev = head

cdef inline bint is_empty(Node* head) noexcept nogil:
    return head.next == head

cdef inline void link_before(Node* node, Node* following) noexcept nogil:
    node.next = following
    node.prev = following.prev
    following.prev.next = node
    following.prev = node

cdef inline void unlink(Node* node) noexcept nogil:
    if node.next != NULL:
        node.prev.next = node.next
        node.next.prev = node.prev
        node.next = NULL
        node.prev = NULL

cdef inline uint64_t spare_size_of(uint32_t size) noexcept nogil:
    return (sizeof(Item) + <uint64_t>size) // SPARE_STEP

cdef inline uint64_t number_of(Item* item) noexcept nogil:
    return (<uint64_t>item.birth << 32) | item.slot


@cython.final
cdef class Shelf:
    cdef Slot* slots
    cdef Node* spare[16]
    cdef uint32_t spare_count
    cdef uint32_t slots_size
    cdef uint32_t free_first
    cdef uint32_t free_last
    cdef Node[10] ready
    cdef uint16_t occupied
    cdef Node returned
    cdef Node doubtful
    cdef Node freed
    cdef Group** buckets
    cdef uint32_t buckets_size
    cdef readonly uint32_t groups
    cdef uint64_t next_sequence
    cdef TimerHeap expiries
    cdef TimerHeap delays
    cdef uint32_t expiries_max
    cdef Cursor** cursors
    cdef uint32_t cursors_count
    cdef readonly uint32_t depth
    cdef readonly uint64_t size_bytes
    cdef readonly uint32_t ready_count
    cdef readonly uint32_t parked_count
    cdef readonly uint32_t delayed_count
    cdef readonly uint32_t returned_count
    cdef readonly uint32_t out_count
    cdef readonly uint32_t doubt_count
    cdef Item* make(self, octets data, uint32_t size) except NULL
    cdef uint64_t stamp(self, Item* item) noexcept
    cdef Item* current(self, uint64_t token) noexcept
    cdef Item* find(self, uint64_t number) noexcept
    cdef int enter(self, Item* item) except -1
    cdef int delay(self, Item* item, double due_s) except -1
    cdef int expire_at(self, Item* item, double expires_s) except -1
    cdef int hand_out(self, Item* item, Hands* hands) except -1
    cdef int give_back(self, Item* item) except -1
    cdef int doubt(self, Item* item) except -1
    cdef int rebind(self, Item* item, Hands* hands) except -1
    cdef int drop(self, Item* item) except -1
    cdef int abandon(self, Hands* hands) except -1
    cdef bint is_stirred(self) noexcept
    cdef int restore(self) except -1
    cdef Item* front(self) noexcept
    cdef Item* oldest(self) noexcept
    cdef Item* after(self, Item* item) noexcept
    cdef Item* pop_expired(self, double now_s) noexcept
    cdef int ripen(self, double now_s) except -1
    cdef int add_cursor(self, Cursor* cursor) except -1
    cdef void remove_cursor(self, Cursor* cursor) noexcept
    cdef Item* next_unseen(self, Cursor* cursor) noexcept
    cdef void saw(self, Cursor* cursor, Item* item) noexcept
    cdef Item* next_item(self, uint32_t* slot) noexcept
    cdef Item* _new_block(self, uint32_t size) except NULL
    cdef void _free_block(self, Item* item) noexcept
    cdef void _free_slot(self, uint32_t slot) noexcept
    cdef int _grow_slots(self) except -1
    cdef void _append_ready(self, Item* item) noexcept
    cdef void _insert_ready(self, Item* item, Node* following) noexcept
    cdef void _leave_ready(self, Item* item) noexcept
    cdef void _leave(self, Item* item) noexcept
    cdef void _bring_back(self, Item* item) noexcept
    cdef void _park(self, Item* item, Node* following) noexcept
    cdef void _unpark(self, Item* item) noexcept
    cdef void _let_go(self, Group* group) noexcept
    cdef void _hold(self, Group* group, Hands* hands) noexcept
    cdef Group* _group(self, uint64_t key) except NULL
    cdef void _forget_group(self, Group* group) noexcept
    cdef int _grow_buckets(self) except -1
    cdef uint32_t _gather(self, Item** items, bint grouped) noexcept
    cdef void _restore_groups(self, Item** items, uint32_t count) noexcept
    cdef uint32_t _promote(self, Item** items, uint32_t count) noexcept
    cdef void _restore_ready(self, Item** items, uint32_t count) noexcept
    cdef void _thin_expiries(self) noexcept

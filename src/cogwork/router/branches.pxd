cimport cython
from libc.stdint cimport uint32_t, uint64_t
from cogwork.router.words cimport Word, cogwork_fold, is_long, resized

from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

# Numbers of branches; no other branch has them. A pattern without words ends at the root.
cdef enum:
    NOWHERE = 0
    ROOT = 1

# Which outlets are bound here: the number of the only one, or the numbers of several.
cdef union Holders:
    uint32_t one
    uint32_t* many

# What a match needs to know of a branch: two share a cache line.
cdef struct Branch:
    uint64_t entered
    Holders holders
    uint32_t count
    uint32_t star
    uint32_t hash
    uint32_t named

# The rest: the parent, or the next free one; a named one's token, and its bytes if it is long.
cdef struct Label:
    uint64_t token
    unsigned char* text
    Py_ssize_t size
    uint32_t parent

# A named branch in the hash table; free where `branch` is NOWHERE.
cdef struct Slot:
    uint64_t token
    uint32_t parent
    uint32_t branch

cdef uint32_t* _numbers(uint32_t* many, size_t count) except NULL


@cython.final
cdef class Branches:
    cdef uint64_t secret
    cdef Branch* at
    cdef Label* labels
    cdef uint32_t capacity
    cdef uint32_t used
    cdef uint32_t free
    cdef uint32_t count
    cdef Slot* slots
    cdef uint64_t mask
    cdef uint64_t named
    cdef uint32_t child(self, uint32_t parent, Word* word) except 0
    cdef bint is_named(self, uint32_t branch, Word* word) noexcept
    cdef int prune(self, uint32_t branch) noexcept
    cdef uint32_t hold(self, uint32_t branch, uint32_t outlet) except? 0xffffffff
    cdef uint32_t drop(self, uint32_t branch, uint32_t place) except? 0xffffffff
    cdef uint32_t _new(self) except 0
    cdef uint32_t _add_named(self, uint32_t parent, Word* word) except 0
    cdef void _detach(self, uint32_t branch) noexcept
    cdef void _release(self, uint32_t branch) noexcept
    cdef int _grow(self) except -1
    cdef uint64_t _home(self, uint32_t parent, uint64_t token) noexcept
    cdef void _place(self, uint64_t token, uint32_t parent, uint32_t branch) noexcept
    cdef void _unplace(self, uint32_t branch) noexcept
    cdef bint _resize(self, uint64_t slots) noexcept


cdef inline uint32_t find(Branches branches, uint32_t parent, Word* word) noexcept:
    """Finds the child of `parent` that a word names, or NOWHERE."""
    cdef uint64_t salt = cogwork_fold(parent, branches.secret)
    cdef uint64_t at = cogwork_fold(word.token ^ salt, branches.secret) & branches.mask
    cdef Slot* slot = branches.slots + at
    while slot.branch != NOWHERE:
        if slot.token == word.token and slot.parent == parent:
            if not is_long(word.token) or branches.is_named(slot.branch, word):
                return slot.branch
        at = (at + 1) & branches.mask
        slot = branches.slots + at
    return NOWHERE


cdef inline bint is_leaf(Branch* branch) noexcept nogil:
    """Tells whether no pattern goes on from here."""
    return branch.star == NOWHERE and branch.hash == NOWHERE and branch.named == 0

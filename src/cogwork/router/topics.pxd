# Declarations for the compiled build of topics.py.
cimport cython
from cogwork.dataplane.interest cimport Interest
from cogwork.dataplane.octets cimport octets

cdef extern from *:
    """
    #ifndef COGWORK_SOURCE_HASH
    #define COGWORK_SOURCE_HASH ""
    #endif
    """
    const char* COGWORK_SOURCE_HASH

cdef Py_ssize_t _SEEN_SLOTS
cdef Py_ssize_t _FIRST_WORDS
cdef Py_ssize_t _FIRST_SLOTS
cdef unsigned char _DOT
cdef unsigned long long _MASK_64
cdef unsigned long long _FNV_PRIME
cdef unsigned long long _GOLDEN
cdef unsigned long long _SEED


@cython.final
cdef class _Words:
    cdef bytes text
    cdef Py_ssize_t count
    cdef long long[::1] ends
    cdef unsigned long long[::1] digests

    @cython.locals(at=Py_ssize_t, byte="unsigned char", digest="unsigned long long")
    cdef void read(self, bytes text) except *
    @cython.locals(start=Py_ssize_t)
    cdef bytes word(self, Py_ssize_t index)
    @cython.locals(text=bytes, start=Py_ssize_t, at=Py_ssize_t)
    cdef bint equals(self, Py_ssize_t index, bytes word) noexcept
    cdef void _end_word(self, Py_ssize_t end, unsigned long long digest) except *
    cdef void _grow(self) except *


@cython.final
cdef class _Member:
    cdef object outlet
    cdef long long match_number
    cdef Py_ssize_t patterns


cdef dict _NOBODY


@cython.final
cdef class _Branch:
    cdef _Branch parent
    cdef bytes word
    cdef unsigned long long salt
    cdef unsigned long long key
    cdef Py_ssize_t named
    cdef _Branch star
    cdef _Branch hash
    cdef dict members
    cdef long long match_number

    cdef bint is_leaf(self) noexcept


@cython.final
cdef class _NamedBranches:
    cdef Py_ssize_t count
    cdef unsigned long long mask
    cdef unsigned long long[::1] keys
    cdef list branches

    @cython.locals(key="unsigned long long", slot="unsigned long long", branch=_Branch)
    cdef _Branch find(self, _Branch parent, _Words words, Py_ssize_t index)
    cdef void add(self, _Branch branch) except *
    @cython.locals(hole="unsigned long long", slot="unsigned long long")
    cdef void remove(self, _Branch branch) except *
    cdef Py_ssize_t _home(self, unsigned long long key) noexcept
    @cython.locals(slot="unsigned long long")
    cdef void _place(self, _Branch branch) except *
    @cython.locals(branches=list, branch=_Branch)
    cdef void _resize(self, Py_ssize_t slots) except *


@cython.final
cdef class TopicTrie(Interest):
    cdef Py_ssize_t _pairs
    cdef long long _match_number
    cdef unsigned long long _branch_serial
    cdef _Words _words
    cdef _NamedBranches _named
    cdef _Branch _root
    cdef dict _literals
    cdef dict _wildcards
    cdef dict _members
    cdef dict _results
    cdef bytearray _seen

    @cython.locals(branch=_Branch, member=_Member)
    cpdef bint bind(self, bytes pattern, object outlet) except -1
    @cython.locals(branch=_Branch, member=_Member)
    cpdef bint unbind(self, bytes pattern, object outlet) except -1
    @cython.locals(found=list)
    cpdef list match(self, bytes subject)
    @cython.locals(branch=_Branch, table=dict)
    cpdef dict patterns(self)
    cdef void _change(self, Py_ssize_t pairs) except *
    @cython.locals(digest=Py_hash_t, slot=Py_ssize_t, mark="unsigned char")
    cdef bint _comes_again(self, bytes subject) except -1
    cdef void _keep(self, bytes subject, list[object] found) except *
    @cython.locals(branch=_Branch)
    cdef _Branch _bound(self, bytes pattern)
    @cython.locals(branch=_Branch, words=_Words, index=Py_ssize_t)
    cdef _Branch _plant(self, bytes pattern)
    @cython.locals(child=_Branch, word=bytes)
    cdef _Branch _child(self, _Branch parent, Py_ssize_t index)
    @cython.locals(parent=_Branch)
    cdef void _uproot(self, bytes pattern, _Branch branch) except *
    @cython.locals(found=list, branch=_Branch)
    cdef list _find(self, bytes subject)
    @cython.locals(child=_Branch)
    cdef void _go_on(self, _Branch branch, Py_ssize_t at, list[object] found) except *
    @cython.locals(position=Py_ssize_t)
    cdef void _spread(self, _Branch branch, Py_ssize_t at, list[object] found) except *
    @cython.locals(member=_Member)
    cdef void _take(self, _Branch branch, list[object] found) except *

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cogwork.dataplane.queue.histogram cimport Histogram
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH

cdef extern from *:
    """
    #define cogwork_ones(word) ((uint32_t)__builtin_popcountll(word))
    """
    uint32_t cogwork_ones(uint64_t word) noexcept nogil

# The numbers of a word, the words of a block.
cdef enum:
    WORD = 64
    BLOCK = 64

# What is known of consecutive numbers, a bit each.
cdef struct Word:
    uint64_t taken
    uint64_t closed


@cython.final
cdef class Disorder:
    cdef readonly Histogram histogram
    cdef readonly uint64_t first
    cdef readonly uint64_t behind
    cdef uint64_t end
    cdef uint64_t ahead
    cdef uint64_t overtaken
    cdef Word* words
    cdef uint32_t* blocks
    cdef uint32_t words_count
    cdef uint32_t words_max
    cpdef int take(self, uint64_t number) except -1
    cpdef int lose(self, uint64_t number) except -1
    cdef int take_early(self, uint64_t number) except -1
    cdef int take_late(self) except -1
    cdef int _close_behind(self) noexcept
    cdef int reach(self, uint64_t number) except -1
    cdef uint64_t _count_after(self, uint64_t number) noexcept
    cdef void _mark(self, uint64_t number, bint taken) noexcept
    cdef bint _pass_first(self) noexcept
    cdef void _advance(self) noexcept
    cdef void _leave_behind(self, uint64_t first) noexcept
    cdef int _grow(self, uint64_t span) except -1

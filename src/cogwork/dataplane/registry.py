"""The termini of a core, by index and generation: what has gone is not found, and nothing dangles."""

import cython
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Registry:
    """Where a core's termini stand: an index is used again, with another generation."""

    def __init__(self):
        self.termini = []
        self.free_indexes = []

    def __dealloc__(self):
        free(self.generations)

    def register(self, terminus):
        index: uint32_t
        if self.free_indexes:
            index = self.free_indexes.pop()
            self.termini[index] = terminus
        else:
            index = cython.cast(uint32_t, len(self.termini))
            if index >= self.generations_size:
                self._grow_generations()
            self.termini.append(terminus)
        terminus.index = index
        terminus.generation = self.generations[index]
        return 0

    def _grow_generations(self):
        size: uint32_t = self.generations_size * 2 if self.generations_size else 64
        grown: cython.pointer(uint32_t) = cython.cast(
            cython.pointer(uint32_t), realloc(self.generations, size * cython.sizeof(uint32_t))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more links")
        memset(
            grown + self.generations_size,
            0,
            (size - self.generations_size) * cython.sizeof(uint32_t),
        )
        self.generations = grown
        self.generations_size = size

    def unregister(self, terminus):
        if terminus.index == NOWHERE:
            return 0
        self.termini[terminus.index] = None
        self.generations[terminus.index] += 1
        self.free_indexes.append(terminus.index)
        terminus.index = NOWHERE
        return 0

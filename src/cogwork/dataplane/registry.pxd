cimport cython
from libc.stdint cimport uint32_t, uint64_t
from cogwork.dataplane.transport.shipment cimport NOWHERE, Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport SETTLE, Terminus


@cython.final
cdef class Registry:
    cdef list termini
    cdef list free_indexes
    cdef uint32_t* generations
    cdef uint32_t generations_size
    cdef int register(self, Terminus terminus) except -1
    cdef int unregister(self, Terminus terminus) except -1
    cdef object _grow_generations(self)

    # Returns None where that terminus has gone, even if another has its index now.
    cdef inline Terminus resolve(self, uint32_t index, uint32_t generation):
        if index == NOWHERE or index >= self.generations_size:
            return None
        if self.generations[index] != generation:
            return None
        return <Terminus>self.termini[index]

    # Tells a delivery's source its outcome; a source that has gone is settled for.
    cdef inline int answer(self, uint32_t index, uint32_t generation, uint64_t token, Verdict* verdict) except -1:
        cdef Terminus source = self.resolve(index, generation)
        if source is None:
            return SETTLE
        return source.resolve_outcome(token, verdict)

from libc.stdint cimport uint32_t
from cogwork.dataplane.core cimport Core
from cogwork.dataplane.transport.ends cimport LinkEnd
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus


cdef class ConsumerEnd(LinkEnd):
    cdef readonly Core core
    cdef public object selector
    cdef public bint no_local
    cdef readonly bint presettles
    cdef public bint is_branch
    cdef public bint keeps_format
    cdef public bint marks_acquired
    cdef bint offered
    cdef public uint32_t cost
    cdef public int priority
    cdef public Terminus feeder
    cdef public bint is_federated
    cdef uint32_t spare_credit(self) except? 0xffffffff


# Says whether `refuses` has to be asked for each message.
cdef inline bint is_picky(ConsumerEnd link) noexcept:
    return link.no_local or link.selector is not None

# Says whether a selector would have to be asked, and has to wait for a later turn.
cdef inline bint must_wait(ConsumerEnd link) noexcept:
    return link.selector is not None and link.core.is_scanned_out()

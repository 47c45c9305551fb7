from libc.stdint cimport uint32_t

from cogwork.dataplane.encoding.octets cimport bytes_from
from cogwork.dataplane.queue.item_table cimport ItemTable
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.state cimport QueueState
from cogwork.dataplane.queue.stored cimport ACQUIRED, AGES, Item
from cogwork.dataplane.queue.timers cimport Timer

cdef int restore_history(Item* item, tuple history, double now_s) except -1

cdef bint is_over(QueueState state, Item* item) except -1

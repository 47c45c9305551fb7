from libc.stdint cimport uint32_t

from cogwork.dataplane.encoding.octets cimport bytes_from
from cogwork.dataplane.queue.shelf cimport Shelf
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.queue.stock cimport Stock
from cogwork.dataplane.queue.stored cimport ACQUIRED, AGES, Item
from cogwork.dataplane.queue.timers cimport Timer

cdef int recall(Item* item, tuple past, double now_s) except -1

cdef bint is_over(Stock stock, Item* item) except -1

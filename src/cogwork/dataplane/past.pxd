from libc.stdint cimport uint32_t

from cogwork.dataplane.octets cimport bytes_from
from cogwork.dataplane.shelf cimport Shelf
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.stock cimport Stock
from cogwork.dataplane.stored cimport ACQUIRED, AGES, Item
from cogwork.dataplane.timers cimport Timer

cdef int recall(Item* item, tuple past, double now_s) except -1

cdef bint is_over(Stock stock, Item* item) except -1

"""Makes stored items ready to be sent: with the header that they have by now."""

import cython
from cython.cimports.cogwork.dataplane.message.envelope import Envelope, read_envelope
from cython.cimports.cogwork.dataplane.message.header import HEADER_SIZE_MAX, write_header
from cython.cimports.cogwork.dataplane.queue.stored import ACQUIRED
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Packer:
    """Writes messages with a new header; what it packed last is good until it packs the next."""

    def __dealloc__(self):
        free(self.scratch)

    def refresh(self, item, now_s, s):
        """Give a shipment a header with the attempts counted and the ttl shortened."""
        e: Envelope
        header_size: uint32_t
        age_ms: cython.double = (now_s - item.stored_s) * 1000.0
        if item.format != 0 or (not item.flags & ACQUIRED and age_ms < 1.0):
            return 0
        self._reserve(item.size + HEADER_SIZE_MAX)
        read_envelope(item.data, item.size, 0, cython.address(e))
        e.header.delivery_count += item.failures
        e.header.first_acquirer = item.flags & ACQUIRED == 0
        if e.header.has_ttl:
            if age_ms < e.header.ttl_ms:
                e.header.ttl_ms -= cython.cast(uint32_t, age_ms)
            else:
                e.header.ttl_ms = 0
        header_size = write_header(self.scratch, cython.address(e.header))
        memcpy(
            self.scratch + header_size,
            item.data + e.header.size_bytes,
            item.size - e.header.size_bytes,
        )
        s.data = self.scratch
        s.size = header_size + item.size - e.header.size_bytes
        return 0

    def _reserve(self, size):
        grown: cython.pointer(uint8_t)
        if size <= self.scratch_size:
            return 0
        grown = cython.cast(cython.pointer(uint8_t), realloc(self.scratch, size))
        if grown == cython.NULL:
            raise MemoryError("no room for a message with a new header")
        self.scratch = grown
        self.scratch_size = size
        return 0

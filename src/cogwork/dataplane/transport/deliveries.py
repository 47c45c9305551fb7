"""The deliveries that wait, and the memory they take."""

import cython
from cython.cimports.cogwork.dataplane.transport.shipment import NOWHERE
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdlib import calloc, free, malloc
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

HELD_BYTES_MAX = 256 * 1024 * 1024
"""What may be held before sessions of which something is held get no more window."""

MARGIN_MIN_BYTES = cython.declare(int64_t, 8 * 1024 * 1024)
MARGIN_MAX_BYTES = cython.declare(int64_t, 32 * 1024 * 1024)
"""So much more may be held, what windows have promised, before whoever holds most has to go."""

INT64_MAX = cython.declare(int64_t, 0x7FFFFFFFFFFFFFFF)


class Deliveries:
    """Makes, counts and frees what waits.

    A delivery waits in its entry (anycast, no consumer has room) or in an outlet's queue. Its chunks
    are shared by all outlets; each counts the outlets that still need it. It is charged to the link
    it came by, and a link gets credit only for what is not charged and not unsettled.
    """

    def __init__(self, registry: Registry):
        self.registry = registry
        self.limit(HELD_BYTES_MAX)
        self.starved = []

    def limit(self, held_bytes: int) -> None:
        """Set how much may be held: above it windows stay closed, and somewhat above it room is made.

        Args:
            held_bytes: So much.
        """
        room: int64_t = max(MARGIN_MIN_BYTES, min(MARGIN_MAX_BYTES, held_bytes // 8))
        self.held_bytes_max = held_bytes
        self.held_bytes_most = min(held_bytes, INT64_MAX - MARGIN_MAX_BYTES) + room

    def make(self, s):
        """Make a delivery of a shipment, without its bytes; the caller releases it."""
        d: cython.pointer(Delivery) = cython.cast(
            cython.pointer(Delivery), calloc(1, cython.sizeof(Delivery))
        )
        if d == cython.NULL:
            raise MemoryError("no room for a delivery")
        self.count += 1
        d.refs = 1
        d.token = s.token
        d.source_index = s.source_index
        d.source_generation = s.source_generation
        d.charged_index = s.via_index
        d.charged_generation = s.via_generation
        d.format = s.format
        d.settled = s.settled
        d.answered = s.settled or s.source_index == NOWHERE
        d.origin = s.origin
        return d

    def append(self, d, data, size):
        """Add a frame's payload, which nobody needs yet."""
        chunk: cython.pointer(Chunk) = cython.cast(
            cython.pointer(Chunk), malloc(cython.sizeof(Chunk) + size)
        )
        if chunk == cython.NULL:
            raise MemoryError("no room for a frame")
        chunk.next = cython.NULL
        chunk.size = size
        chunk.refs = 0
        if size:
            memcpy(chunk.data, data, size)
        if d.last == cython.NULL:
            d.first = chunk
        else:
            d.last.next = chunk
        d.last = chunk
        d.size_bytes += size
        self.held_bytes += size
        link: ReceivingEnd = self.registry.resolve(d.charged_index, d.charged_generation)
        if link is not None:
            link.hold(size, d.assembled)
        return chunk

    def merge(self, d):
        """Make one chunk of those of a complete delivery that nobody has passed on yet.

        So what is looked at again and again, by selectors or for its age, is copied once.
        """
        chunk: cython.pointer(Chunk)
        following: cython.pointer(Chunk)
        at: uint64_t = 0
        whole: cython.pointer(Chunk) = cython.cast(
            cython.pointer(Chunk), malloc(cython.sizeof(Chunk) + d.size_bytes)
        )
        if whole == cython.NULL:
            raise MemoryError("no room for a message in one piece")
        chunk = d.first
        while chunk != cython.NULL:
            memcpy(whole.data + at, chunk.data, chunk.size)
            at += chunk.size
            following = chunk.next
            free(chunk)
            chunk = following
        whole.next = cython.NULL
        whole.size = cython.cast(uint32_t, at)
        whole.refs = 0
        d.first = d.last = whole
        return 0

    def assemble(self, d):
        """Keep what has come of a delivery, and what will, for its link to route when it is whole.

        Nobody has passed on anything of it.
        """
        link: ReceivingEnd = self.registry.resolve(d.charged_index, d.charged_generation)
        if link is not None:
            link.let_go(d.size_bytes, False)
            link.hold(d.size_bytes, True)
        d.assembled = True
        if d.charges:
            d.charges = 1
            self.uncharge(d)
        return 0

    def trim(self, d):
        """Free the chunks that every outlet has passed; they are always the first ones."""
        chunk: cython.pointer(Chunk)
        freed: int64_t = 0
        while d.first != cython.NULL and d.first.refs == 0:
            chunk = d.first
            d.first = chunk.next
            freed += chunk.size
            free(chunk)
        if d.first == cython.NULL:
            d.last = cython.NULL
        if freed:
            self.held_bytes -= freed
            link: ReceivingEnd = self.registry.resolve(d.charged_index, d.charged_generation)
            if link is not None:
                link.let_go(freed, d.assembled)
            if self.starved and self.held_bytes <= self.held_bytes_max:
                self._feed_starved()
        return 0

    def _feed_starved(self):
        """Open the windows that were left closed because too much was held for others."""
        sessions: list = self.starved
        session: Due
        self.starved = []
        for session in sessions:
            session.relieve()
        return 0

    def release(self, d):
        """Drop one reason to keep a delivery; with the last one it is freed."""
        chunk: cython.pointer(Chunk)
        d.refs -= 1
        if d.refs > 0:
            return 0
        chunk = d.first
        while chunk != cython.NULL:
            chunk.refs = 0
            chunk = chunk.next
        self.trim(d)
        if d.charges:
            d.charges = 1
            self.uncharge(d)
        free(d)
        self.count -= 1
        return 0

    def charge(self, d):
        """Add a reason to withhold credit from the link that `d` came by."""
        d.charges += 1
        if d.charges > 1 or not d.answered:
            return 0
        link: ReceivingEnd = self.registry.resolve(d.charged_index, d.charged_generation)
        if link is not None:
            link.charged += 1
        return 0

    def uncharge(self, d):
        """Take back one reason to withhold credit from the link that `d` came by."""
        d.charges -= 1
        if d.charges > 0 or not d.answered:
            return 0
        link: ReceivingEnd = self.registry.resolve(d.charged_index, d.charged_generation)
        if link is not None:
            link.charged -= 1
            link.top_up()
        return 0


def join(d):
    """Copy a complete delivery's chunks into one block."""
    joined: bytes = PyBytes_FromStringAndSize(cython.NULL, d.size_bytes)
    out: cython.p_char = PyBytes_AS_STRING(joined)
    at: uint64_t = 0
    chunk: cython.pointer(Chunk) = d.first
    while chunk != cython.NULL:
        memcpy(out + at, chunk.data, chunk.size)
        at += chunk.size
        chunk = chunk.next
    return joined

"""Which messages of other containers the owner of a queue has taken, so that it takes none twice.

Theory of operation. Whoever sends a message to the owner of a queue sends it again until it has an
answer: where a crash or a lost link hides that, the owner has it already. So the delivery-tag says
who sends it, in which life, and under which number; a container's numbers for a queue rise by one.
Of each container the highest number is known, and which of the `FORWARDS_MAX` up to it were taken:
no container has more of them unanswered, so a lower one than all of these was answered before. What
was refused has not been taken, and may come again.

A message of an earlier life is taken, and not remembered: that life sends nothing again.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    load_u64,
    octets_of,
    store_u64,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

ROW_BYTES = cython.declare(cython.Py_ssize_t, FORWARD_TAG_BYTES + 8 * FORWARD_WORDS)


class ForwardSource:
    """What was taken of one container's."""

    def has(self, number):
        """Return whether a number was taken."""
        if number > self.highest:
            return False
        if self.highest - number >= FORWARDS_MAX:
            return True
        return self.taken[(number >> 6) % FORWARD_WORDS] >> (number & 63) & 1

    def note(self, number):
        """Take note of a number; the room of those that are too old for it is made empty."""
        at: uint64_t
        if number > self.highest:
            if number - self.highest >= FORWARDS_MAX:
                memset(self.taken, 0, cython.sizeof(self.taken))
            else:
                at = self.highest + 1
                while at < number:
                    self.taken[(at >> 6) % FORWARD_WORDS] &= ~(
                        cython.cast(uint64_t, 1) << (at & 63)
                    )
                    at += 1
            self.highest = number
        elif self.highest - number >= FORWARDS_MAX:
            return
        self.taken[(number >> 6) % FORWARD_WORDS] |= cython.cast(uint64_t, 1) << (number & 63)


class ForwardDedup:
    """What was taken of all containers, by a hash of their ids."""

    def __init__(self):
        self.sources = {}

    def knows(self, tag):
        """Return whether the message of a tag was taken."""
        source: ForwardSource = self.sources.get(load_u64(tag))
        if source is None or source.incarnation != load_u64(tag + 8):
            return False
        return source.has(load_u64(tag + 16))

    def remember(self, tag):
        """Take note of a message that was taken."""
        key: object = load_u64(tag)
        incarnation: uint64_t = load_u64(tag + 8)
        source: ForwardSource = self.sources.get(key)
        if source is None or source.incarnation < incarnation:
            source = ForwardSource()
            source.incarnation = incarnation
            self.sources[key] = source
        if source.incarnation == incarnation:
            source.note(load_u64(tag + 16))
        return 0

    # -- written down

    def rows(self) -> list:
        """List what is known of each container, in octets: see FORWARDS of the journal."""
        return [self.row(key) for key in self.sources]

    def row(self, key):
        """Write down what is known of one container."""
        at: uint32_t
        source: ForwardSource = self.sources[key]
        made: bytes = PyBytes_FromStringAndSize(cython.NULL, ROW_BYTES)
        p: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(made))
        store_u64(p, key)
        store_u64(p + 8, source.incarnation)
        store_u64(p + 16, source.highest)
        for at in range(FORWARD_WORDS):
            store_u64(p + FORWARD_TAG_BYTES + 8 * at, source.taken[at])
        return made

    def restore(self, p):
        """Take in what was written down of one container; a later life of it counts more."""
        at: uint32_t
        key: object = load_u64(p)
        known: ForwardSource = self.sources.get(key)
        source: ForwardSource = ForwardSource()
        source.incarnation = load_u64(p + 8)
        source.highest = load_u64(p + 16)
        for at in range(FORWARD_WORDS):
            source.taken[at] = load_u64(p + FORWARD_TAG_BYTES + 8 * at)
        if known is None or known.incarnation <= source.incarnation:
            self.sources[key] = source
        return 0

    def restore_rows(self, rows: list) -> None:
        """Take in what `rows` has listed."""
        for row in rows:
            self.restore(octets_of(cython.cast(bytes, row)))

    def knows_tag(self, tag: bytes) -> bool:
        """Return whether the message of a tag was taken."""
        return len(tag) == FORWARD_TAG_BYTES and self.knows(octets_of(tag))

    def remember_tag(self, tag: bytes) -> None:
        """Take note of a message that was taken."""
        if len(tag) == FORWARD_TAG_BYTES:
            self.remember(octets_of(tag))

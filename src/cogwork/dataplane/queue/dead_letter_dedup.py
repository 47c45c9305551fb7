"""The dead letters that a queue has taken lately, so that it takes none twice.

Theory of operation. A queue whose items outlive its container sends a dead letter until it knows
for good that it was accepted: where a crash or a lost connection hides that, once more. So the
dead letter says in a delivery annotation (AMQP 1.0 §3.2.2) which one it is. That is a matter
between these two queues: what is kept of the dead letter is without that section, and nobody who
reads it and sends it on repeats what it said. But whoever may send to a queue can write such a
section, and a dead letter must not be passed over for that. So a dead letter is known by its id
together with the bare message (AMQP 1.0 §3.2), which is the same however often it is sent.
"""

import hashlib

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from
from cython.cimports.cogwork.dataplane.encoding.values import descriptor_code, skip_value
from cython.cimports.libc.stdint import int64_t, uint32_t

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class DeadLetterDedup:
    """By what dead letters are known, the last `REMEMBERED_MAX`."""

    def __init__(self):
        self.ids = {}

    def knows(self, key):
        """Return whether a dead letter was taken already."""
        return key in self.ids

    def remember(self, key):
        """Remember a dead letter; the oldest one makes room."""
        if len(self.ids) >= REMEMBERED_MAX:
            del self.ids[next(iter(self.ids))]
        self.ids[key] = None
        return 0

    def remembered(self) -> list:
        """List them, oldest first."""
        return list(self.ids)


def dead_letter_key(s, e):
    """Return by what a dead letter is known, in 16 octets; None where it does not say."""
    start: int64_t = e.id_section_end
    body: int64_t = 0
    if e.dead_letter_id == cython.NULL:
        return None
    if descriptor_code(s.data + start, s.size - start, cython.address(body)) == 0x72:
        start = skip_value(s.data, start + body, s.size)
    hashed = hashlib.blake2b(
        bytes_from(e.dead_letter_id, DEAD_LETTER_ID_BYTES), digest_size=DEAD_LETTER_ID_BYTES
    )
    if start >= 0:
        hashed.update(bytes_from(s.data + start, cython.cast(uint32_t, s.size - start)))
    return hashed.digest()


def without_dead_letter_id(s, e):
    """Return a message without the section that says which dead letter it is."""
    rest: cython.uint = s.size - e.id_section_end
    return bytes_from(s.data, e.id_section_start) + bytes_from(s.data + e.id_section_end, rest)

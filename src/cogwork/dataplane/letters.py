"""The dead letters that a queue has taken lately, so that it takes none twice.

Theory of operation. A queue whose items outlive its container sends a dead letter until it knows
for good that it was accepted: where a crash or a lost connection hides that, once more. So the
letter says in a delivery annotation (AMQP 1.0 §3.2.2) which one it is. That is a matter between
these two queues: what is kept of the letter is without that section, and nobody who reads it and
sends it on repeats what it said.
"""

import cython
from cython.cimports.cogwork.dataplane.octets import bytes_from

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Letters:
    """The ids of dead letters, the last `LETTERS_MAX`."""

    def __init__(self):
        self.ids = {}

    def knows(self, letter):
        """Says whether a letter was taken already."""
        return letter in self.ids

    def remember(self, letter):
        """Remembers a letter; the oldest one makes room."""
        if len(self.ids) >= LETTERS_MAX:
            del self.ids[next(iter(self.ids))]
        self.ids[letter] = None
        return 0

    def remembered(self) -> list:
        """Lists the ids, oldest first."""
        return list(self.ids)


def letter_of(e):
    """Returns which dead letter an envelope is of; None where it does not say."""
    return None if e.letter_id == cython.NULL else bytes_from(e.letter_id, LETTER_ID_BYTES)


def opened(s, e):
    """Returns a message without the section that says which letter it is."""
    rest: cython.uint = s.size - e.letter_end
    return bytes_from(s.data, e.letter_start) + bytes_from(s.data + e.letter_end, rest)

"""What was confirmed, for claims that come again because the confirmation was lost."""

import cython
from cython.cimports.libc.stdlib import calloc, free

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Commits:
    """The last attempts whose claims were confirmed, by the numbers of their items."""

    def __dealloc__(self):
        free(self.ring)

    def add(self, number, attempt):
        """Remembers an attempt; the oldest one is forgotten."""
        if self.ring == cython.NULL:
            self.ring = cython.cast(cython.pointer(Commit), calloc(COMMITS, cython.sizeof(Commit)))
            if self.ring == cython.NULL:
                raise MemoryError("no room to remember commits")
        self.ring[self.at].number = number
        self.ring[self.at].attempt = attempt
        self.at = (self.at + 1) & (COMMITS - 1)
        return 0

    def remembered(self) -> list:
        """Lists the numbers and attempts, oldest first."""
        at: uint32_t
        found: list = []
        commit: cython.pointer(Commit)
        if self.ring == cython.NULL:
            return found
        for at in range(cython.cast(uint32_t, COMMITS)):
            commit = self.ring + ((self.at + at) & (COMMITS - 1))
            if commit.attempt:
                found.append((commit.number, commit.attempt))
        return found

    def has(self, number, attempt):
        """Says whether an attempt was confirmed, looking at the newest first."""
        at: uint32_t = self.at
        left: uint32_t = COMMITS if self.ring != cython.NULL and attempt else 0
        while left > 0:
            left -= 1
            at = (at - 1) & (COMMITS - 1)
            if self.ring[at].number == number and self.ring[at].attempt == attempt:
                return True
        return False

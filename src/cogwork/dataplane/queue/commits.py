"""Which attempts of which items were confirmed, for claims that come again.

Theory of operation. A claim is counted, and its confirmation may be lost. Whoever made it comes back
and asks, perhaps through another container or after a restart; whoever had an earlier attempt asks,
too. So the queue keeps the number, the attempt and the time of each item that it has confirmed, the
last `COMMITS` of them, for `COMMIT_KEPT_S` seconds.

They stand in a ring, which grows with them; the oldest one is overwritten. Each one is chained to the
one before it of the same hash. Adding one touches nothing else: a chain goes from newer to older ones
and ends where it comes to one that has been overwritten, which its number in the order of all tells.
"""

import cython
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.libc.stdlib import calloc, free, malloc

__all__ = ("SOURCE_HASH", "Commits")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SIZE_MIN = cython.declare(uint32_t, 64)

HASH_FACTOR = cython.declare(uint64_t, 0x9E3779B97F4A7C15)
"""Knuth's: items of one batch have consecutive slots, and are to be spread."""


class Commits:
    """The last attempts whose claims were confirmed, by the numbers of their items."""

    def __dealloc__(self):
        free(self.ring)
        free(self.heads)

    def __len__(self):
        return self.count

    def add(self, number, attempt, at_s):
        """Remember a confirmed attempt.

        Args:
            number: The item's.
            attempt: Which of its attempts it was; at least 1.
            at_s: When, in seconds since 1970.
        """
        commit: cython.pointer(Commit)
        head: cython.pointer(uint32_t)
        if self.count == self.size and self.size < COMMITS and not self._has_old(at_s):
            self._grow()
        commit = self.ring + (self.next & (self.size - 1))
        head = self.heads + (cython.cast(uint32_t, (number * HASH_FACTOR) >> 32) & (self.size - 1))
        commit.number = number
        commit.attempt = attempt
        commit.at_s = at_s
        commit.before = head[0]
        head[0] = self.next
        self.next += 1
        if self.count < self.size:
            self.count += 1
        return 0

    def attempt_of(self, number, now_s):
        """Return the attempt of an item that was confirmed; 0 where none is known.

        Args:
            number: The item's.
            now_s: In seconds since 1970.
        """
        commit: cython.pointer(Commit)
        at: uint32_t
        age: uint32_t = 0
        if self.count == 0:
            return 0
        at = self.heads[cython.cast(uint32_t, (number * HASH_FACTOR) >> 32) & (self.size - 1)]
        # A commit's age says whether it is still in the ring; in a chain it only rises.
        while age < self.next - at <= self.count:
            age = self.next - at
            commit = self.ring + (at & (self.size - 1))
            if commit.number == number:
                return commit.attempt if is_recent(commit.at_s, now_s) else 0
            at = commit.before
        return 0

    def remembered(self, now_s: int) -> list:
        """List the numbers, attempts and times of what is known, the oldest first."""
        age: uint32_t
        now: uint32_t = now_s
        commit: cython.pointer(Commit)
        found: list = []
        for age in range(self.count, 0, -1):
            commit = self.ring + ((self.next - age) & (self.size - 1))
            if is_recent(commit.at_s, now):
                found.append((commit.number, commit.attempt, commit.at_s))
        return found

    def _has_old(self, at_s):
        """Say whether the oldest one need not be known any more."""
        if self.count == 0:
            return False
        return not is_recent(self.ring[(self.next - self.count) & (self.size - 1)].at_s, at_s)

    def _grow(self):
        """Make room for twice as many; the numbers in their order begin anew."""
        age: uint32_t
        old: cython.pointer(Commit) = self.ring
        commit: cython.pointer(Commit)
        mask: uint32_t = self.size - 1
        end: uint32_t = self.next
        count: uint32_t = self.count
        size: uint32_t = 2 * self.size if self.size else SIZE_MIN
        ring = cython.cast(cython.pointer(Commit), malloc(size * cython.sizeof(Commit)))
        heads = cython.cast(cython.pointer(uint32_t), calloc(size, cython.sizeof(uint32_t)))
        if ring == cython.NULL or heads == cython.NULL:
            free(ring)
            free(heads)
            raise MemoryError("no room to remember commits")
        free(self.heads)
        self.ring = ring
        self.heads = heads
        self.size = size
        self.count = 0
        self.next = 1  # above what an empty chain begins with, by more than any number that is here
        for age in range(count, 0, -1):
            commit = old + ((end - age) & mask)
            self.add(commit.number, commit.attempt, commit.at_s)
        free(old)
        return 0

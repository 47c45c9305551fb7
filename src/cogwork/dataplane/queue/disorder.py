"""How far items go out in another order than they came in.

Theory of operation. The disorder of an item is how many that came later went out before it. Items
have numbers, in the order they came; `first` is the lowest one that is still open, which means that
it did not go out and is not lost. While each that goes out is the first one, nothing else is kept.
What closes ahead of it has a bit in a ring of words, and those that went out are counted by blocks
of words too, so that those after a number are counted quickly.

The ring spans so many numbers at most. Open ones that fall out of it are `behind`: they are taken
to keep order among themselves, and what went out of the ring since then has overtaken them all.
"""

import cython
from cython.cimports.libc.stdlib import calloc, free

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

WORDS_MIN = cython.declare(uint32_t, 64)
"""One block: the ring's size at first."""

WORDS_MAX = cython.declare(uint32_t, 16384)
"""A million numbers, in 256 KiB."""


class Disorder:
    """Counts, for each item that goes out, those that overtook it.

    Attributes:
        histogram: What was counted lately.
        first: The lowest number in reach that is open.
        behind: How many lower ones are open.
    """

    def __cinit__(self, words_max: int = WORDS_MAX):
        """Initialize it; it has seen nothing; the first number is 1.

        Args:
            words_max: The ring's size at most, in words of 64 numbers: a power of two, at least 64.
        """
        self.histogram = Histogram()
        self.first = 1
        self.words_max = words_max

    def __dealloc__(self):
        free(self.words)
        free(self.blocks)

    def take(self, number):
        """Count an item that goes out."""
        if number > self.first:
            return self.take_early(number)
        if number < self.first:
            return self.take_late()
        if self.ahead == 0:
            self.histogram.add_zero()
        else:
            self.histogram.add(self.ahead)
        if self.behind:
            self.overtaken += 1
        self.first += 1
        self._advance()
        return 0

    def take_all(self, numbers: cython.const[int64_t][::1]) -> None:
        """Count items that go out, in this order.

        Args:
            numbers: Theirs; each is greater than zero.
        """
        at: cython.Py_ssize_t
        for at in range(numbers.shape[0]):
            self.take(cython.cast(uint64_t, numbers[at]))

    def lose(self, number):
        """Take note of an item that never goes out."""
        if number < self.first:
            return self._close_behind()
        if number == self.first:
            self.first += 1
        else:
            self.reach(number)
            self._mark(number, False)
        self._advance()
        return 0

    def take_early(self, number):
        self.reach(number)
        self.histogram.add(self._count_after(number))
        self._mark(number, True)
        self.ahead += 1
        # Where the ring had to move on, this may be its first number by now.
        self._advance()
        return 0

    def take_late(self):
        self.histogram.add(self.ahead + self.overtaken)
        return self._close_behind()

    def _close_behind(self):
        self.behind -= 1
        if self.behind == 0:
            self.overtaken = 0
        return 0

    # -- the ring

    def reach(self, number):
        """Make the ring span the numbers from the first one to this one."""
        # One word is left free, so that no word holds the last numbers and the first ones too.
        span: uint64_t = number - self.first + WORD
        room: uint64_t = cython.cast(uint64_t, self.words_max) * WORD
        if span > room:
            self._leave_behind(self.first + (span - room))
            span = number - self.first + WORD
        if span > cython.cast(uint64_t, self.words_count) * WORD:
            self._grow(span)
        return 0

    def _count_after(self, number):
        """Count what went out of the numbers above one."""
        count: uint64_t = 0
        at: uint64_t = number + 1
        while at < self.end:
            if at % (BLOCK * WORD) == 0 and self.end - at >= BLOCK * WORD:
                count += self.blocks[(at // WORD & (self.words_count - 1)) // BLOCK]
                at += BLOCK * WORD
            else:
                count += cogwork_ones(
                    self.words[at // WORD & (self.words_count - 1)].taken >> (at % WORD)
                )
                at += WORD - at % WORD
        return count

    def _mark(self, number, taken):
        """Close a number in the ring."""
        at: uint32_t = number // WORD & (self.words_count - 1)
        bit: uint64_t = cython.cast(uint64_t, 1) << (number % WORD)
        self.words[at].closed |= bit
        if taken:
            self.words[at].taken |= bit
            self.blocks[at // BLOCK] += 1
        self.end = max(self.end, number + 1)

    def _pass_first(self):
        """Move past the first number of the ring; return whether it was closed."""
        at: uint32_t = self.first // WORD & (self.words_count - 1)
        bit: uint64_t = cython.cast(uint64_t, 1) << (self.first % WORD)
        self.first += 1
        if not self.words[at].closed & bit:
            return False
        self.words[at].closed &= ~bit
        if self.words[at].taken & bit:
            self.words[at].taken &= ~bit
            self.blocks[at // BLOCK] -= 1
            self.ahead -= 1
            if self.behind:
                self.overtaken += 1
        return True

    def _advance(self):
        """Move on to the first open number."""
        while self.first < self.end:
            if not self._pass_first():
                self.first -= 1
                return

    def _leave_behind(self, first):
        """Let the ring begin no earlier than with this number."""
        while self.first < first and self.first < self.end:
            if not self._pass_first():
                self.behind += 1
        if self.first < first:
            self.behind += first - self.first
            self.first = first
        self._advance()

    def _grow(self, span):
        """Make the ring larger, with what it holds in its places."""
        count: uint32_t = max(self.words_count, WORDS_MIN)
        words: cython.pointer(Word)
        blocks: cython.pointer(uint32_t)
        at: uint64_t
        while cython.cast(uint64_t, count) * WORD < span:
            count *= 2
        words = cython.cast(cython.pointer(Word), calloc(count, cython.sizeof(Word)))
        blocks = cython.cast(
            cython.pointer(uint32_t), calloc(count // BLOCK, cython.sizeof(uint32_t))
        )
        if words == cython.NULL or blocks == cython.NULL:
            free(words)
            free(blocks)
            raise MemoryError("no room to count what overtakes")
        if self.first < self.end:
            for at in range(self.first // WORD, (self.end - 1) // WORD + 1):
                words[at & (count - 1)] = self.words[at & (self.words_count - 1)]
                blocks[(at & (count - 1)) // BLOCK] += cogwork_ones(words[at & (count - 1)].taken)
        free(self.words)
        free(self.blocks)
        self.words, self.blocks, self.words_count = words, blocks, count
        return 0

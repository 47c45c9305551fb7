"""Topics: which outlets take a subject, by patterns of words with wildcards.

Theory of operation. In a pattern the word `*` stands for exactly one word and `#` for any number of
them, none included (AMQP 0-10, topic exchange). Patterns are a trie by words; one that has no
wildcards is a path of named branches. A subject is taken apart once; from then on a match follows
numbers through arrays, and makes no object but its result.

A match walks the trie in depth. A `#` branch goes on from every position of the subject after the
one at which it is entered. Positions are tried in order, so a `#` branch that stands below another
is entered first at its earliest position, and what comes after adds nothing: it is entered once in
a match. The work stays within branches times words, whatever patterns a peer sends.

An outlet bound by several patterns is one number, stamped with the match that found it, so it
appears once without a set. Where a subject's digest says, a mark is left; who finds its own there
was met of late, and then the result is kept until the bindings change.

Where a container is made or dropped, the interpreter may run anybody's code, and that may call the
trie. So nothing of the kind happens while the words are read, while the trie is walked, or while
the bindings are half changed.

The module runs only compiled, with the declarations beside it. Words and branches are modules of
their own; what a match does for each of them is inline.
"""

import cython
from cython.cimports.cpython.list import PyList_New, PyList_SET_ITEM
from cython.cimports.cpython.ref import Py_INCREF
from cython.cimports.libc.stdlib import free
from cython.cimports.libc.string import memcmp

__all__ = ("CACHE_LIMIT", "MAX_PATTERN_WORDS", "SOURCE_HASH", "PatternTooLongError", "TopicTrie")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

MAX_PATTERN_WORDS = 128
"""As many as a key of AMQP 0-10, of 255 bytes, can have; it bounds the depth of a match."""

MATCH_STEPS_MAX = cython.declare(int64_t, 1_000_000)
"""Branches that a match may enter, some milliseconds: a subject of thousands of words that takes
more, by patterns which are made for it, has no subscribers."""

CACHE_LIMIT = KEPT_MAX
"""Subjects whose result is kept, about 1 MB; one more, and all are forgotten."""

SECRET = hash(b"the interpreter's secret: nobody outside can choose words that collide")

OUTLETS_MIN = cython.declare(uint32_t, 16)
OUTLETS_MAX = cython.declare(uint32_t, 0x40000000)


class PatternTooLongError(ValueError):
    """A pattern of more than `MAX_PATTERN_WORDS` words."""


class Outlets:
    """The outlets of a trie by number, from 1; those that are gone leave theirs to others.

    `patterns` says how many patterns hold an outlet, or which number is free next; `found` lists
    what a match has found so far.
    """

    def __cinit__(self):
        self.numbers = {}
        self.used = 1

    def __dealloc__(self):
        free(self.at)
        free(self.patterns)
        free(self.found)

    def number(self, outlet):
        """Return the number of an outlet, or 0."""
        number = self.numbers.get(outlet)
        return 0 if number is None else number

    def add(self, outlet):
        """Return the number of a new outlet."""
        number: uint32_t = self.free
        if number == 0 and self.used >= self.capacity:
            self._grow()
        self.numbers[outlet] = self.used if number == 0 else number
        if number == 0:
            number = self.used
            self.used += 1
        else:
            self.free = self.patterns[number]
        self.at[number].match = 0
        self.at[number].itself = cython.cast(cython.pointer(PyObject), outlet)
        self.patterns[number] = 0
        return number

    def remove(self, outlet, number):
        """Forget an outlet that no pattern holds; the caller keeps it alive for now."""
        del self.numbers[outlet]
        self.at[number].itself = cython.NULL
        self.patterns[number] = self.free
        self.free = number
        return 0

    def _grow(self):
        capacity: cython.size_t = max(2 * self.capacity, OUTLETS_MIN)
        if capacity > OUTLETS_MAX:
            raise MemoryError("no room for more outlets")
        self.at = cython.cast(
            cython.pointer(Outlet), resized(self.at, capacity * cython.sizeof(Outlet))
        )
        self.patterns = cython.cast(
            cython.pointer(uint32_t), resized(self.patterns, capacity * cython.sizeof(uint32_t))
        )
        self.found = cython.cast(
            cython.pointer(uint32_t), resized(self.found, capacity * cython.sizeof(uint32_t))
        )
        self.capacity = cython.cast(uint32_t, capacity)
        return 0


class TopicTrie:
    """The bindings of one space of topics: (pattern, outlet) pairs.

    Attributes:
        version: Increases with every change of the bindings.
    """

    def __cinit__(self, secret=SECRET):
        """Make an empty one.

        Args:
            secret: What the digests of words hang on; under 0 all of them collide, for tests.
        """
        self._secret = secret & 0xFFFF_FFFF_FFFF_FFFF
        self._words = Words(self._secret)
        self._branches = Branches(self._secret)
        self._outlets = Outlets()
        self._patterns = {}
        self._places = {}
        self._kept = {}

    def __len__(self):
        """Count the (pattern, outlet) pairs."""
        return len(self._places)

    @property
    def branch_count(self):
        """Counts the branches that the patterns have, the root included."""
        return self._branches.count

    def bind(self, pattern, outlet):
        """Let `outlet` take the subjects that match `pattern`.

        Args:
            pattern: Words separated by dots, `*` and `#` among them.
            outlet: Any object that can be hashed and compared without calling the trie; `match`
                gives it back.

        Returns:
            True when this pair is new.

        Raises:
            PatternTooLongError: The pattern has more than `MAX_PATTERN_WORDS` words.
        """
        number: uint32_t = self._outlets.number(outlet)
        branch: uint32_t = self._patterns.get(pattern, NOWHERE)
        if number != 0 and branch != NOWHERE and _pair(branch, number) in self._places:
            return False
        if branch == NOWHERE:
            branch = self._plant(pattern)
        if number == 0:
            number = self._outlets.add(outlet)
        place = self._branches.hold(branch, number)
        self._outlets.patterns[number] += 1
        self._places[_pair(branch, number)] = place
        self._changed()
        return True

    def unbind(self, pattern, outlet):
        """Take one pair away.

        Returns:
            True when the pair was there.
        """
        number: uint32_t = self._outlets.number(outlet)
        branch: uint32_t = self._patterns.get(pattern, NOWHERE)
        moved: uint32_t
        itself: object
        place = self._places.pop(_pair(branch, number), None)
        if place is None:
            return False
        itself = cython.cast(object, self._outlets.at[number].itself)
        moved = self._branches.drop(branch, place)
        if moved != 0:
            self._places[_pair(branch, moved)] = place
        if self._branches.at[branch].count == 0:
            del self._patterns[pattern]
            self._branches.prune(branch)
        self._outlets.patterns[number] -= 1
        if self._outlets.patterns[number] == 0:
            self._outlets.remove(itself, number)
        self._changed()
        return True

    def touch(self):
        """Have results that others keep found anew, as after a change."""
        self._changed()

    def match(self, subject):
        """Find the outlets that take `subject`.

        Returns:
            Each outlet once, in an order that stays until the bindings change. The list is shared
            with later calls: callers must not change it.
        """
        return self.match_octets(subject, len(subject))

    def match_octets(self, text, size):
        """Find the outlets that take the subject of `size` bytes at `text`, as `match` does."""
        found: list
        kept: tuple
        slot: uint64_t
        mark: uint16_t
        came_again: cython.bint
        self._words.read(text, size)
        slot = self._words.digest & (SEEN_SLOTS - 1)
        mark = self._words.digest >> 48
        came_again = self._seen[slot] == mark
        if came_again:
            kept = self._kept.get(slot)
            if kept is not None and _is_same(kept[0], text, size):
                return kept[1]
        self._seen[slot] = mark
        found = self._find()
        while found is None:
            self._words.read(text, size)
            found = self._find()
        if came_again:
            self._keep(slot, text[:size], found)
        return found

    def patterns(self):
        """Count the outlets of each pattern, for status."""
        number: uint32_t
        counts = {}
        for pattern, branch in self._patterns.items():
            number = branch
            counts[pattern] = self._branches.at[number].count
        return counts

    def _changed(self):
        self.version += 1
        self._matches += 1
        self._kept.clear()
        return 0

    def _plant(self, pattern):
        """Make the branch for a pattern that has none."""
        branch: uint32_t = ROOT
        at: cython.Py_ssize_t
        self._words.read(pattern, len(pattern))
        if self._words.count > MAX_PATTERN_WORDS:
            raise PatternTooLongError(
                f"a pattern of {self._words.count} words; at most {MAX_PATTERN_WORDS} are allowed"
            )
        for at in range(self._words.count):
            branch = self._branches.child(branch, self._words.at + at)
        self._patterns[pattern] = branch
        return branch

    def _keep(self, slot, subject, found):
        """Keep a result, unless making the entry for it changed the bindings."""
        version: uint64_t = self.version
        kept = (subject, found)
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        if self.version == version:
            self._kept[slot] = kept
        return 0

    def _find(self):
        """List who takes the words; None where the trie was called in between."""
        match: uint64_t = self._matches + 1
        at: uint32_t
        found: list
        outlet: object
        self._matches = match
        self._left = MATCH_STEPS_MAX
        self._outlets.found_count = 0
        self._go_on(ROOT, 0)
        if self._left <= 0:
            return []
        found = PyList_New(self._outlets.found_count)
        if self._matches != match:
            return None
        for at in range(self._outlets.found_count):
            outlet = cython.cast(object, self._outlets.at[self._outlets.found[at]].itself)
            Py_INCREF(outlet)
            PyList_SET_ITEM(found, at, outlet)
        return found

    def _go_on(self, number, at):
        """Go on from a branch, which was reached with the words from `at` to come."""
        branch: cython.pointer(Branch) = self._branches.at + number
        child: uint32_t
        if self._left <= 0:
            return
        self._left -= 1
        if branch.hash != NOWHERE:
            self._spread(branch.hash, at)
        if at == self._words.count:
            self._take(branch)
            return
        if branch.named:
            child = find(self._branches, number, self._words.at + at)
            if child != NOWHERE:
                self._go_on(child, at + 1)
        if branch.star != NOWHERE:
            self._go_on(branch.star, at + 1)

    def _spread(self, number, at):
        """Enter a `#` branch, which takes any number of the words from `at`."""
        branch: cython.pointer(Branch) = self._branches.at + number
        position: cython.Py_ssize_t
        if branch.entered == self._matches:
            return
        branch.entered = self._matches
        if is_leaf(branch):
            self._take(branch)
            return
        for position in range(at, self._words.count + 1):
            self._go_on(number, position)

    def _take(self, branch):
        """Add who is bound here; the objects are fetched while the walk goes on."""
        at: uint32_t
        outlet: cython.pointer(Outlet)
        numbers: cython.pointer(uint32_t) = cython.address(branch.holders.one)
        if branch.count > 1:
            numbers = branch.holders.many
        for at in range(branch.count):
            outlet = self._outlets.at + numbers[at]
            if outlet.match != self._matches:
                outlet.match = self._matches
                cogwork_prefetch(outlet.itself)
                self._outlets.found[self._outlets.found_count] = numbers[at]
                self._outlets.found_count += 1


@cython.cfunc
def _pair(branch: uint32_t, outlet: uint32_t) -> object:
    """Return the key of a branch and an outlet that is bound to it."""
    return (cython.cast(uint64_t, branch) << 32) | outlet


@cython.cfunc
@cython.exceptval(check=False)
def _is_same(kept: bytes, text: octets, size: cython.Py_ssize_t) -> cython.bint:
    return len(kept) == size and memcmp(cython.cast(octets, kept), text, size) == 0

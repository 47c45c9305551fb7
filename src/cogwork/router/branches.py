"""The branches of a topic trie: plain structs in one array, known by their numbers.

Theory of operation. A branch has named children and at most one child each for `*` and `#`. All
named children of all branches stand in one hash table: open addressing, linear probing, at most two
thirds full. A slot holds parent and token, so a search that does not find, and one that finds a
short word, touches no branch but the one found. Where a slot is sought hangs on the secret.

The numbers of branches that are gone are used again; the array keeps the size that it once needed.
"""

import cython
from cython.cimports.libc.stdlib import calloc, free, malloc
from cython.cimports.libc.string import memcmp, memcpy, memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

CAPACITY_MIN = cython.declare(uint32_t, 16)
CAPACITY_MAX = cython.declare(uint32_t, 0x40000000)
SLOTS_MIN = cython.declare(uint64_t, 64)


def _numbers(many, count):
    """Make room for as many numbers again as there are."""
    return cython.cast(cython.pointer(uint32_t), resized(many, 2 * count * cython.sizeof(uint32_t)))


class Branches:
    """All branches of one trie; there is always a root."""

    def __cinit__(self, secret: cython.ulonglong):
        self.secret = secret
        self.used = ROOT
        self._grow()
        self._new()
        if not self._resize(SLOTS_MIN):
            raise MemoryError("no room for branches")

    def __dealloc__(self):
        number: uint32_t
        for number in range(ROOT, self.used):
            if self.at[number].count > 1:
                free(self.at[number].holders.many)
            free(self.labels[number].text)
        free(self.at)
        free(self.labels)
        free(self.slots)

    def child(self, parent, word):
        """Return the child for a word of a pattern, made if need be."""
        found: uint32_t
        is_star: cython.bint = word.size == 1 and word.text[0] == 0x2A
        is_hash: cython.bint = word.size == 1 and word.text[0] == 0x23
        if is_star:
            found = self.at[parent].star
        elif is_hash:
            found = self.at[parent].hash
        else:
            found = find(self, parent, word)
        if found != NOWHERE:
            return found
        if not is_star and not is_hash:
            return self._add_named(parent, word)
        found = self._new()
        self.labels[found].parent = parent
        if is_star:
            self.at[parent].star = found
        else:
            self.at[parent].hash = found
        return found

    def is_named(self, branch, word):
        """Tell whether a long word whose token fits is the one that names the branch."""
        label: cython.pointer(Label) = self.labels + branch
        return label.size == word.size and memcmp(label.text, word.text, word.size) == 0

    def prune(self, branch):
        """Remove a branch that holds nothing, and those above that were there for it alone."""
        parent: uint32_t
        while branch != ROOT and self.at[branch].count == 0 and is_leaf(self.at + branch):
            parent = self.labels[branch].parent
            self._detach(branch)
            self._release(branch)
            branch = parent
        return 0

    def hold(self, branch, outlet):
        """Bind an outlet here that is not; return its place among those of the branch."""
        here: cython.pointer(Branch) = self.at + branch
        many: cython.pointer(uint32_t) = cython.NULL if here.count < 2 else here.holders.many
        place: uint32_t = here.count
        if place == 0:
            here.holders.one = outlet
        else:
            if place & (place - 1) == 0:
                many = _numbers(many, place)
                if place == 1:
                    many[0] = here.holders.one
                here.holders.many = many
            many[place] = outlet
        here.count += 1
        return place

    def drop(self, branch, place):
        """Take the outlet at a place away; return the last one, which has its place now, or 0."""
        here: cython.pointer(Branch) = self.at + branch
        many: cython.pointer(uint32_t)
        moved: uint32_t = 0
        here.count -= 1
        if here.count == 0:
            return 0
        many = here.holders.many
        if place != here.count:
            moved = many[here.count]
            many[place] = moved
        if here.count == 1:
            here.holders.one = many[0]
            free(many)
        elif here.count & (here.count - 1) == 0:
            here.holders.many = _numbers(many, here.count)
        return moved

    def _new(self):
        """Return a branch that is bare and belongs nowhere."""
        number: uint32_t = self.free
        if number != NOWHERE:
            self.free = self.labels[number].parent
        else:
            if self.used == self.capacity:
                self._grow()
            number = self.used
            self.used += 1
        memset(self.at + number, 0, cython.sizeof(Branch))
        memset(self.labels + number, 0, cython.sizeof(Label))
        self.count += 1
        return number

    def _add_named(self, parent, word):
        number: uint32_t
        label: cython.pointer(Label)
        if 3 * self.named >= 2 * self.mask and not self._resize(2 * (self.mask + 1)):
            raise MemoryError("no room for more branches")
        number = self._new()
        label = self.labels + number
        label.token = word.token
        label.parent = parent
        if is_long(word.token):
            label.size = word.size
            label.text = cython.cast(cython.p_uchar, malloc(word.size))
            if label.text == cython.NULL:
                self._release(number)
                raise MemoryError("no room for a long word")
            memcpy(label.text, word.text, word.size)
        self._place(word.token, parent, number)
        self.named += 1
        self.at[parent].named += 1
        return number

    def _detach(self, branch):
        """Take a leaf from its parent."""
        parent: cython.pointer(Branch) = self.at + self.labels[branch].parent
        if parent.star == branch:
            parent.star = NOWHERE
        elif parent.hash == branch:
            parent.hash = NOWHERE
        else:
            self._unplace(branch)
            parent.named -= 1
            self.named -= 1
            if self.mask >= SLOTS_MIN and 8 * self.named < self.mask:
                self._resize((self.mask + 1) // 2)

    def _release(self, branch):
        free(self.labels[branch].text)
        self.labels[branch].text = cython.NULL
        self.labels[branch].parent = self.free
        self.free = branch
        self.count -= 1

    def _grow(self):
        capacity: cython.size_t = max(2 * self.capacity, CAPACITY_MIN)
        if capacity > CAPACITY_MAX:
            raise MemoryError("no room for more branches")
        self.at = cython.cast(
            cython.pointer(Branch), resized(self.at, capacity * cython.sizeof(Branch))
        )
        self.labels = cython.cast(
            cython.pointer(Label), resized(self.labels, capacity * cython.sizeof(Label))
        )
        self.capacity = cython.cast(uint32_t, capacity)
        return 0

    def _home(self, parent, token):
        return cogwork_fold(token ^ cogwork_fold(parent, self.secret), self.secret) & self.mask

    def _place(self, token, parent, branch):
        at: uint64_t = self._home(parent, token)
        while self.slots[at].branch != NOWHERE:
            at = (at + 1) & self.mask
        self.slots[at].token = token
        self.slots[at].parent = parent
        self.slots[at].branch = branch

    def _unplace(self, branch):
        """Empty a slot, and move up what was put behind it for its sake."""
        hole: uint64_t = self._home(self.labels[branch].parent, self.labels[branch].token)
        at: uint64_t
        home: uint64_t
        while self.slots[hole].branch != branch:
            hole = (hole + 1) & self.mask
        at = (hole + 1) & self.mask
        while self.slots[at].branch != NOWHERE:
            home = self._home(self.slots[at].parent, self.slots[at].token)
            if ((at - home) & self.mask) >= ((at - hole) & self.mask):
                self.slots[hole] = self.slots[at]
                hole = at
            at = (at + 1) & self.mask
        self.slots[hole].branch = NOWHERE

    def _resize(self, slots):
        """Spread the named branches anew; return whether there was room."""
        old: cython.pointer(Slot) = self.slots
        old_size: uint64_t = self.mask + 1 if old != cython.NULL else 0
        at: uint64_t
        new: cython.p_void = calloc(slots, cython.sizeof(Slot))
        if new == cython.NULL:
            return False
        self.slots = cython.cast(cython.pointer(Slot), new)
        self.mask = slots - 1
        for at in range(old_size):
            if old[at].branch != NOWHERE:
                self._place(old[at].token, old[at].parent, old[at].branch)
        free(old)
        return True

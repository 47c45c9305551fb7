"""Topics: which outlets take a subject, by patterns of words with wildcards.

Theory of operation. Words are separated by `.`; in a pattern `*` stands for exactly one word and
`#` for any number of them, none included (AMQP 0-10, topic exchange). The empty subject has no
words; between two dots that touch lies an empty word.

Patterns without wildcards are one dictionary, asked with the whole subject. Patterns with wildcards
are a trie by words. A branch has named children and at most one child each for `*` and `#`; all
named children live in one hash table, keyed by parent and word, so that a match makes no object for
a word: a subject is read once into digests, and a digest that fits is held to the bytes.

A match walks the trie in depth. A `#` branch goes on from every position of the subject after the
one at which it is entered. Positions are tried in order, so a `#` branch that stands below another
is entered first at its earliest position, and what comes after adds nothing: it is entered once in
a match. The work stays within branches times words, whatever patterns a peer sends.

An outlet bound by several patterns is one `_Member`, stamped with the number of the match that took
it, so it appears once without a set. The result for a subject that comes a second time is kept
until the bindings change.

This file is compiled with the declarations beside it, `topics.pxd`, and runs as it is, too. Words,
branches and trie stay in one module: calls between them are most of a match.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.cogwork.dataplane.octets import bytes_from

__all__ = ("CACHE_LIMIT", "MAX_PATTERN_WORDS", "SOURCE_HASH", "PatternTooLongError", "TopicTrie")

SOURCE_HASH = (
    COGWORK_SOURCE_HASH.decode()  # type: ignore[name-defined]  # noqa: F821  (in topics.pxd)
    if cython.compiled
    else ""
)

MAX_PATTERN_WORDS = 128
"""As many as a key of AMQP 0-10, of 255 bytes, can have; it bounds the depth of a match."""

CACHE_LIMIT = 4096
"""Subjects whose result is kept, about 1 MB; one more, and all are forgotten."""

_SEEN_SLOTS = 0x4000
_FIRST_WORDS = 32
_FIRST_SLOTS = 64

_DOT = 0x2E
_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF
_FNV_PRIME = 0x100_0000_01B3
_GOLDEN = 0x9E37_79B9_7F4A_7C15
_SEED = hash(b"the interpreter's secret: nobody outside can choose words that collide") & _MASK_64


class PatternTooLongError(ValueError):
    """A pattern of more than `MAX_PATTERN_WORDS` words."""


class _Words:
    """The words of one text after another: where each ends, and its digest (FNV-1a, seeded)."""

    def __init__(self) -> None:
        self.text = b""
        self.count = 0
        self.ends = array("q", bytes(8 * _FIRST_WORDS))
        self.digests = array("Q", bytes(8 * _FIRST_WORDS))

    def read(self, text: bytes) -> None:
        """Forgets the text before, and takes `text` apart."""
        self.text = text
        self.count = 0
        digest = _SEED
        for at in range(len(text)):
            byte = text[at]
            if byte == _DOT:
                self._end_word(at, digest)
                digest = _SEED
            else:
                digest = ((digest ^ byte) * _FNV_PRIME) & _MASK_64
        if len(text):
            self._end_word(len(text), digest)

    def word(self, index: cython.Py_ssize_t) -> bytes:
        """Returns the word at `index` as an object of its own."""
        start = self.ends[index - 1] + 1 if index else 0
        return self.text[start : self.ends[index]]

    def equals(self, index: cython.Py_ssize_t, word: bytes) -> bool:
        """Tells whether the word at `index` is `word`."""
        text = self.text
        start = self.ends[index - 1] + 1 if index else 0
        if self.ends[index] - start != len(word):
            return False
        at = 0
        while at < len(word) and text[start + at] == word[at]:
            at += 1
        return at == len(word)

    def _end_word(self, end: cython.Py_ssize_t, digest: cython.ulonglong) -> None:
        if self.count == len(self.ends):
            self._grow()
        self.ends[self.count] = end
        self.digests[self.count] = digest
        self.count += 1

    def _grow(self) -> None:
        room = bytes(8 * len(self.ends))
        self.ends = array("q", bytes(self.ends) + room)
        self.digests = array("Q", bytes(self.digests) + room)


class _Member:
    """An outlet; the match that took it last; how many patterns hold it."""

    def __init__(self, outlet: object) -> None:
        self.outlet = outlet
        self.match_number = 0
        self.patterns = 0


_NOBODY: dict[object, _Member] = {}
"""What every branch without members shares: never filled."""


class _Branch:
    """The words read so far, as a position in the trie; `members` are bound to exactly these.

    `key` is word and parent in one, as good as unique. `match_number` tells the match that entered
    a `#` branch last.
    """

    def __init__(
        self,
        parent: _Branch | None,
        word: bytes,
        digest: cython.ulonglong,
        serial: cython.ulonglong,
    ) -> None:
        self.parent = parent
        self.word = word
        self.salt = (serial * _GOLDEN) & _MASK_64
        self.key = 1 if parent is None else (digest ^ parent.salt) | 1
        self.named = 0
        self.star: _Branch | None = None
        self.hash: _Branch | None = None
        self.members = _NOBODY
        self.match_number = 0

    def is_leaf(self) -> bool:
        """Tells whether no pattern goes on from here."""
        return self.named == 0 and self.star is None and self.hash is None


class _NamedBranches:
    """The hash table of all named children: open addressing, linear probing, at most half full.

    Keys stand apart from the branches, so that a search for what is not there touches no branch.
    A key is never 0: that is a free slot.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mask = _FIRST_SLOTS - 1
        self.keys = array("Q", bytes(8 * _FIRST_SLOTS))
        self.branches: list[_Branch | None] = [None] * _FIRST_SLOTS

    def find(self, parent: _Branch, words: _Words, index: cython.Py_ssize_t) -> _Branch | None:
        """Returns the child of `parent` named by the word at `index`, if there is one."""
        key = (words.digests[index] ^ parent.salt) | 1
        slot = (key ^ (key >> 32)) & self.mask
        while self.keys[slot] != 0:
            if self.keys[slot] == key:
                branch: _Branch = self.branches[slot]
                if branch.parent is parent and words.equals(index, branch.word):
                    return branch
            slot = (slot + 1) & self.mask
        return None

    def add(self, branch: _Branch) -> None:
        """Takes in a branch that is not there."""
        if 2 * self.count > self.mask:
            self._resize(2 * (self.mask + 1))
        self._place(branch)
        self.count += 1

    def remove(self, branch: _Branch) -> None:
        """Takes out a branch that is there, and moves up what was put behind it for its sake."""
        hole = self._home(branch.key)
        while self.branches[hole] is not branch:
            hole = (hole + 1) & self.mask
        slot = (hole + 1) & self.mask
        while self.keys[slot] != 0:
            if ((slot - self._home(self.keys[slot])) & self.mask) >= ((slot - hole) & self.mask):
                self.keys[hole] = self.keys[slot]
                self.branches[hole] = self.branches[slot]
                hole = slot
            slot = (slot + 1) & self.mask
        self.keys[hole] = 0
        self.branches[hole] = None
        self.count -= 1
        if self.mask >= _FIRST_SLOTS and 16 * self.count < self.mask:
            self._resize((self.mask + 1) // 4)

    def _home(self, key: cython.ulonglong) -> cython.Py_ssize_t:
        return (key ^ (key >> 32)) & self.mask

    def _place(self, branch: _Branch) -> None:
        slot = self._home(branch.key)
        while self.keys[slot] != 0:
            slot = (slot + 1) & self.mask
        self.keys[slot] = branch.key
        self.branches[slot] = branch

    def _resize(self, slots: cython.Py_ssize_t) -> None:
        branches = self.branches
        self.mask = slots - 1
        self.keys = array("Q", bytes(8 * slots))
        self.branches = [None] * slots
        for branch in branches:
            if branch is not None:
                self._place(branch)


class TopicTrie:
    """The bindings of one space of topics: (pattern, outlet) pairs.

    Attributes:
        version: Increases with every change of the bindings.
    """

    def __init__(self) -> None:
        self.version = 0
        self._pairs = 0
        self._match_number = 0
        self._branch_serial = 0
        self._words = _Words()
        self._named = _NamedBranches()
        self._root = _Branch(None, b"", 0, 0)
        self._literals: dict[bytes, _Branch] = {}
        self._wildcards: dict[bytes, _Branch] = {}
        self._members: dict[object, _Member] = {}
        self._results: dict[bytes, list[object]] = {}
        self._seen = bytearray(_SEEN_SLOTS)

    def __len__(self) -> int:
        """Counts the (pattern, outlet) pairs."""
        return self._pairs

    def bind(self, pattern: bytes, outlet: object) -> bool:
        """Lets `outlet` take the subjects that match `pattern`.

        Args:
            pattern: Words separated by dots, `*` and `#` among them.
            outlet: Any hashable object; `match` gives it back.

        Returns:
            True when this pair is new.

        Raises:
            PatternTooLongError: The pattern has more than `MAX_PATTERN_WORDS` words.
        """
        member = self._members.get(outlet)
        branch = self._bound(pattern)
        if branch is None:
            branch = self._plant(pattern)
        elif outlet in branch.members:
            return False
        if member is None:
            member = _Member(outlet)
            self._members[outlet] = member
        member.patterns += 1
        branch.members[outlet] = member
        self._change(1)
        return True

    def unbind(self, pattern: bytes, outlet: object) -> bool:
        """Takes one pair away.

        Returns:
            True when the pair was there.
        """
        branch = self._bound(pattern)
        if branch is None or outlet not in branch.members:
            return False
        member = branch.members.pop(outlet)
        member.patterns -= 1
        if member.patterns == 0:
            del self._members[outlet]
        if not branch.members:
            self._uproot(pattern, branch)
        self._change(-1)
        return True

    def match(self, subject: bytes) -> list[object]:
        """Finds the outlets that take `subject`.

        Returns:
            Each outlet once, in an order that stays until the bindings change. The list is shared
            with later calls: callers must not change it.
        """
        found = self._results.get(subject)
        if found is None:
            found = self._find(subject)
            if self._comes_again(subject):
                self._keep(subject, found)
        return found

    def match_octets(self, subject, size):
        return self.match(bytes_from(subject, size))

    def patterns(self) -> dict[bytes, int]:
        """Counts the outlets of each pattern, for status."""
        counts: dict[bytes, int] = {}
        for table in (self._literals, self._wildcards):
            for pattern, branch in table.items():
                counts[pattern] = len(branch.members)
        return counts

    def _change(self, pairs: cython.Py_ssize_t) -> None:
        self._pairs += pairs
        self.version += 1
        self._results.clear()

    def _comes_again(self, subject: bytes) -> bool:
        """Tells, with rare mistakes, whether `subject` was met of late: only then it is kept.

        A byte of its hash stays in the slot that the rest of the hash names.
        """
        digest = hash(subject)
        slot = digest & (_SEEN_SLOTS - 1)
        mark = (digest >> 24) & 0xFF
        seen = self._seen[slot] == mark
        self._seen[slot] = mark
        return seen

    def _keep(self, subject: bytes, found: list[object]) -> None:
        if len(self._results) >= CACHE_LIMIT:
            self._results.clear()
        self._results[subject] = found

    def _bound(self, pattern: bytes) -> _Branch | None:
        """Returns the branch that holds the members of `pattern`, if it has any."""
        branch = self._literals.get(pattern)
        return self._wildcards.get(pattern) if branch is None else branch

    def _plant(self, pattern: bytes) -> _Branch:
        """Makes the branch for a pattern that has none."""
        words = self._words
        words.read(pattern)
        if words.count > MAX_PATTERN_WORDS:
            raise PatternTooLongError(
                f"a pattern of {words.count} words; at most {MAX_PATTERN_WORDS} are allowed"
            )
        names = pattern.split(b".")
        if b"*" in names or b"#" in names:
            branch = self._root
            for index in range(words.count):
                branch = self._child(branch, index)
            self._wildcards[pattern] = branch
        else:
            branch = _Branch(None, pattern, 0, 0)
            self._literals[pattern] = branch
        branch.members = {}
        return branch

    def _child(self, parent: _Branch, index: cython.Py_ssize_t) -> _Branch:
        """Returns the child of `parent` for the word at `index`, made if need be."""
        word = self._words.word(index)
        if word == b"*":
            child = parent.star
        elif word == b"#":
            child = parent.hash
        else:
            child = self._named.find(parent, self._words, index)
        if child is not None:
            return child
        self._branch_serial += 1
        child = _Branch(parent, word, self._words.digests[index], self._branch_serial)
        if word == b"*":
            parent.star = child
        elif word == b"#":
            parent.hash = child
        else:
            self._named.add(child)
            parent.named += 1
        return child

    def _uproot(self, pattern: bytes, branch: _Branch) -> None:
        """Removes a branch without members, and those above that were there for it alone."""
        branch.members = _NOBODY
        if branch.parent is None and self._literals.pop(pattern, None) is not None:
            return
        del self._wildcards[pattern]
        while branch.parent is not None and not branch.members and branch.is_leaf():
            parent = branch.parent
            if parent.star is branch:
                parent.star = None
            elif parent.hash is branch:
                parent.hash = None
            else:
                self._named.remove(branch)
                parent.named -= 1
            branch = parent

    def _find(self, subject: bytes) -> list[object]:
        found: list[object] = []
        self._match_number += 1
        branch = self._literals.get(subject)
        if branch is not None:
            self._take(branch, found)
        if self._wildcards:
            self._words.read(subject)
            self._go_on(self._root, 0, found)
        return found

    def _go_on(self, branch: _Branch, at: cython.Py_ssize_t, found: list[object]) -> None:
        """Goes on from `branch`, which was reached with the words from `at` to come."""
        if branch.hash is not None:
            self._spread(branch.hash, at, found)
        if at == self._words.count:
            if branch.members:
                self._take(branch, found)
            return
        if branch.named:
            child = self._named.find(branch, self._words, at)
            if child is not None:
                self._go_on(child, at + 1, found)
        if branch.star is not None:
            self._go_on(branch.star, at + 1, found)

    def _spread(self, branch: _Branch, at: cython.Py_ssize_t, found: list[object]) -> None:
        """Enters a `#` branch, which takes any number of the words from `at`."""
        if branch.match_number == self._match_number:
            return
        branch.match_number = self._match_number
        if branch.members:
            self._take(branch, found)
        if not branch.is_leaf():
            for position in range(at, self._words.count + 1):
                self._go_on(branch, position, found)

    def _take(self, branch: _Branch, found: list[object]) -> None:
        for member in branch.members.values():
            if member.match_number != self._match_number:
                member.match_number = self._match_number
                found.append(member.outlet)

"""Permissions: what a user may do with which addresses.

A grant names rights and a pattern of addresses; what no grant names is denied. In a grant's pattern
words end at `/` and `.`, `*` is one word and `#` any number: `queue/#` is everything below `queue`
and `queue` itself, `topic/flights.*.LAX.#` the topics of flights to LAX, `#` everything.

A receiver may ask for a pattern itself, as in `topic/flights.#`. It is allowed only where one grant
covers all that the pattern can take: nobody sees more by asking for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cogwork.router.patterns import ANY_WORD, ANY_WORDS, address_words, covers, topic_words

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Grant", "GrantError", "Permissions", "Right")


class Right(StrEnum):
    """What can be done with an address."""

    SEND = "send"
    RECEIVE = "receive"
    MANAGE = "manage"


class GrantError(ValueError):
    """A grant that cannot be used.

    Attributes:
        key: `address` or `rights`.
        problem: What is wrong.
        expected: What would be right.
    """

    def __init__(self, key: str, problem: str, expected: str) -> None:
        super().__init__(f"grant: {key}: {problem}; expected {expected}")
        self.key = key
        self.problem = problem
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Grant:
    """Allows rights on the addresses that match a pattern.

    Attributes:
        address: The pattern; a leading `/` is optional.
        rights: At least one; plain strings are taken too.

    Raises:
        GrantError: No address, no rights, or a right that there is not.
    """

    address: str
    rights: frozenset[Right]

    def __post_init__(self) -> None:
        if not isinstance(self.address, str) or not self.address.removeprefix("/"):
            raise GrantError("address", f"{self.address!r}", "an address, * and # among its words")
        known = ", ".join(Right)
        if not self.rights or isinstance(self.rights, str):
            raise GrantError("rights", f"{self.rights!r}", f"a list of {known}")
        for right in self.rights:
            if right not in list(Right):
                raise GrantError("rights", f"{right!r}", f"one of {known}")
        object.__setattr__(self, "rights", frozenset(Right(right) for right in self.rights))

    def __str__(self) -> str:
        rights = " and ".join(right.value for right in Right if right in self.rights)
        return f"{rights} on {self.address}"


class Permissions:
    """What one user may do. Does not change."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        """Allows what one of the grants allows, and nothing else."""
        self.grants = tuple(grants)
        self._reaches = {
            right: _Reach([grant.address for grant in self.grants if right in grant.rights])
            for right in Right
        }

    @classmethod
    def everything(cls) -> Permissions:
        """Allows every right on every address."""
        return cls([Grant("#", frozenset(Right))])

    def allows(self, right: Right, address: str) -> bool:
        """Tells whether `right` is granted on an address, or on all that a pattern can take.

        Args:
            right: What is to be done.
            address: With or without the leading `/`; a receiver's may hold wildcards.
        """
        return self._reaches[right].covers(address)

    def describe(self) -> str:
        """Returns the grants in one line, for status and errors."""
        return "may " + "; ".join(map(str, self.grants)) if self.grants else "may do nothing"


class _Reach:
    """The addresses of one right.

    Plain names and prefixes are found without taking words apart: a sender to the anonymous relay
    may name another address with each message.
    """

    def __init__(self, patterns: list[str]) -> None:
        names: set[str] = set()
        prefixes: set[str] = set()
        self._patterns: list[list[str]] = []
        for words in map(_words, patterns):
            *head, last = words
            if ANY_WORD in head or ANY_WORDS in head or last == ANY_WORD:
                self._patterns.append(words)
            elif last == ANY_WORDS:
                names.add(".".join(head))
                prefixes.add("".join(word + "." for word in head))
            else:
                names.add(".".join(words))
        self._names = frozenset(names)
        self._prefixes = tuple(prefixes)

    def covers(self, address: str) -> bool:
        """Tells whether one of the patterns takes all that `address` can take."""
        name = address.removeprefix("/").replace("/", ".")
        if name in self._names or name.startswith(self._prefixes):
            return True
        return any(covers(pattern, topic_words(name)) for pattern in self._patterns)


def _words(address: str) -> list[str]:
    return address_words(address.removeprefix("/"))

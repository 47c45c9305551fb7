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

from cogwork.router.patterns import address_words, covers

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
        self._patterns: dict[Right, list[list[str]]] = {right: [] for right in Right}
        for grant in self.grants:
            for right in grant.rights:
                self._patterns[right].append(_words(grant.address))

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
        words = _words(address)
        return any(covers(pattern, words) for pattern in self._patterns[right])

    def describe(self) -> str:
        """Returns the grants in one line, for status and errors."""
        return "may " + "; ".join(map(str, self.grants)) if self.grants else "may do nothing"


def _words(address: str) -> list[str]:
    return address_words(address.removeprefix("/"))

"""Who may do what where: address patterns of permissions against addresses.

Theory of operation. An address is words, each with the separator before it: `topic/flights.JFK` is
`topic`, `/flights`, `.JFK`. In a pattern `*` is exactly one word and `#` any number of them; the
separators in a pattern must be those of the address. A pattern is a small automaton: it is walked
with all its states at once, so no pattern makes a match slow.

What a client asks for may hold wildcards itself (the source of a topic's subscriber). It must not
get more than its permission says, so `*` in a permission takes any word but `#`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.settings import Configuration, Permission, Right

__all__ = ("Permissions", "matches", "misplaced_wildcard", "permissions_of")

_WORD = re.compile(r"(^|[/.])([^/.]*)")
_Word = tuple[str, str]


class Permissions:
    """All that one user may do."""

    def __init__(self, permissions: Iterable[Permission]) -> None:
        """Read the patterns once.

        Args:
            permissions: As configured.
        """
        self._granted = [
            (right, permission.vhost, _words(permission.address))
            for permission in permissions
            for right in permission.rights
        ]

    def allows(self, right: Right, address: str, vhost: str | None = None) -> bool:
        """Tells whether the user has a right.

        Args:
            right: What is to be done.
            address: Where; may be a pattern, and must then be covered whole.
            vhost: In which virtual host; None is the default one.
        """
        words = _words(address)
        return any(
            granted == right and where in (None, vhost) and _match(pattern, words)
            for granted, where, pattern in self._granted
        )


def permissions_of(configuration: Configuration, identity: str | None) -> Permissions | None:
    """Finds what an authenticated peer may do.

    Args:
        configuration: The one in force.
        identity: The name that the peer proved; None for an anonymous one.

    Returns:
        Its permissions; None where no `[[user]]` has that name.
    """
    if identity is None:
        return Permissions(configuration.anonymous.permissions)
    for user in configuration.users:
        if user.name == identity:
            return Permissions(user.permissions)
    return None


def matches(pattern: str, address: str) -> bool:
    """Tells whether an address, or all that a pattern may stand for, falls under `pattern`."""
    return _match(_words(pattern), _words(address))


def misplaced_wildcard(pattern: str) -> str | None:
    """Finds the first word that mixes a wildcard with other characters; None is a good pattern."""
    for _, word in _words(pattern):
        if len(word) > 1 and ("*" in word or "#" in word):
            return word
    return None


def _words(address: str) -> list[_Word]:
    return _WORD.findall(address.removeprefix("/"))


def _match(pattern: list[_Word], words: list[_Word]) -> bool:
    states = _skip_hashes(pattern, {(0, False)})
    for word in words:
        states = _skip_hashes(pattern, _step(pattern, states, word))
    return any(at == len(pattern) for at, _ in states)


def _step(
    pattern: list[_Word], states: set[tuple[int, bool]], word: _Word
) -> set[tuple[int, bool]]:
    """Takes one word of the address.

    A state is a position in the pattern, and whether the `#` before it has begun: then it takes
    any word, while its first word needs the separator that stands before it in the pattern.
    """
    separator, text = word
    after = {(at, True) for at, in_hash in states if in_hash}
    for at, _ in states:
        if at == len(pattern) or pattern[at][0] != separator:
            continue
        wanted = pattern[at][1]
        if wanted == "#":
            after.add((at + 1, True))
        elif wanted == text or (wanted == "*" and text != "#"):
            after.add((at + 1, False))
    return after


def _skip_hashes(pattern: list[_Word], states: set[tuple[int, bool]]) -> set[tuple[int, bool]]:
    """Adds the states in which a `#` takes no word at all."""
    for at, _ in list(states):
        skipped = at
        while skipped < len(pattern) and pattern[skipped][1] == "#":
            skipped += 1
            states.add((skipped, False))
    return states

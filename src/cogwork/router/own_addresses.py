"""The broker's own addresses, which the wildcards of permissions do not reach.

They are those whose first word begins with `$` or `_`, such as `$management`, and those whose
second word begins with `$`, such as `stream/$audit`. Reply addresses are none of them: whoever was
given one is meant to send there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.patterns import address_words

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("CLAIMS", "MANAGEMENT", "missing", "own_words", "right_needed")

MANAGEMENT = "$management"
"""Whoever may manage it may do everything at all of them."""

CLAIMS = "$cbs"
"""Where clients put tokens: whoever has none to show may nothing, and gets nothing there."""

REPLIES = "_reply"

_LOOKED_AT_CHARACTERS = 256
"""The first two words of any address that means something, for a message about it."""


def own_words(words: Sequence[str]) -> int:
    """Return how many words make an address one of the broker's own; 0 for all others."""
    if not words:  # an address that is empty, or nothing but separators
        return 0
    if words[0].startswith(("$", "_")):
        return 0 if words[0] == REPLIES else 1
    return 2 if len(words) > 1 and words[1].startswith("$") else 0


def right_needed(right: str, count: int) -> str:
    """Return the right that is needed at one: what its streams hold is the operator's to write.

    Args:
        right: What is to be done there.
        count: As `own_words` returned.
    """
    return "manage" if right == "send" and count > 1 else right


def missing(right: str, address: str) -> str:
    """Say that a permission is missing, and which one would do where that is not obvious."""
    text = f"no permission to {right} at {address!r:.200}"
    bare = address.removeprefix("/")
    count = own_words(address_words(bare[:_LOOKED_AT_CHARACTERS]))
    if not count:
        return text
    return f"{text} (grant {right_needed(right, count)} on {bare!r:.200}: no wildcard reaches it)"

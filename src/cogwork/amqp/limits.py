"""Limits of the codec: what hostile bytes may cost at most."""

from __future__ import annotations

from typing import Final

__all__ = ("MAX_DEPTH", "MAX_EMPTY_ITEMS", "MAX_HASH_CLASHES", "KeyGuard")

MAX_DEPTH: Final = 32
"""How deep values may nest: deeper than any real message, shallow enough for the C stack."""

MAX_EMPTY_ITEMS: Final = 16
"""How many items an array may hold that take no bytes: a count alone must not cost memory."""

MAX_HASH_CLASHES: Final = 16
"""How many keys of a map may share a hash with another: more are no accident (`KeyGuard`)."""


class KeyGuard:
    """Keeps a map's keys from being chosen so that all fall into one bucket of a dict.

    Hashes of str, bytes and datetime are salted by Python, those of integers up to 64 bits hardly
    clash; UUIDs, decimals, arrays and described values can be chosen to clash by the thousand.
    """

    __slots__ = ("_clashes", "_hashes")

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._clashes = 0

    def admits(self, key: object) -> bool:
        """Count a key; return whether the clashes are still within the limit.

        Raises:
            TypeError: The key cannot be hashed.
        """
        if isinstance(key, str | bytes | int):
            return True
        digest = hash(key)
        self._clashes += digest in self._hashes
        self._hashes.add(digest)
        return self._clashes <= MAX_HASH_CLASHES

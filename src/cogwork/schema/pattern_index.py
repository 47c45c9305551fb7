"""The patterns that have schemas, found by the first word of an address."""

from __future__ import annotations

from cogwork.router.patterns import address_words, is_pattern, takes

__all__ = ("PatternIndex",)

WILD = ("*", "#")


class PatternIndex:
    """Patterns by their first word; those that begin with a wildcard are by none."""

    def __init__(self) -> None:
        """Start with none."""
        self._patterns: dict[str, dict[str, tuple[list[str], int]]] = {}
        self._count = 0

    def __len__(self) -> int:
        """Count them."""
        return self._count

    def add(self, address: str) -> None:
        """Take an address, where that is a pattern."""
        if is_pattern(address):
            words = address_words(address)
            plain = sum(word not in WILD for word in words)
            self._patterns.setdefault(_first(words), {})[address] = (words, plain)
            self._count += 1

    def remove(self, address: str) -> None:
        """Let an address go, where that is one of them."""
        several = self._patterns.get(_first(address_words(address)), {})
        if several.pop(address, None) is not None:
            self._count -= 1

    def find(self, address: str) -> str | None:
        """Return the pattern with most plain words of those that take an address, if any does."""
        found = self._taking(address)
        return max(found)[1] if found else None

    def taking(self, address: str) -> set[str]:
        """Return all patterns that take an address."""
        return {name for _, name in self._taking(address)}

    def _taking(self, address: str) -> list[tuple[int, str]]:
        words = address_words(address)
        return [
            (plain, name)
            for first in ("", *words[:1])
            for name, (pattern, plain) in self._patterns.get(first, {}).items()
            if takes(pattern, words)
        ]


def _first(words: list[str]) -> str:
    return "" if words[0] in WILD else words[0]

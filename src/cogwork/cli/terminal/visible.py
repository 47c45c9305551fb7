"""Text of others on a terminal: nothing but what can be seen of it."""

from __future__ import annotations

__all__ = ("visible",)


def visible(text: str) -> str:
    """Escape what would move the cursor, or do more to a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)

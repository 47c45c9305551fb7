"""Limits of the codec: what a few bytes may cost at most."""

from __future__ import annotations

from typing import Final

__all__ = ("MAX_DEPTH", "MAX_EMPTY_ITEMS")

MAX_DEPTH: Final = 32
"""How deep values may nest: deeper than any real message, shallow enough for the C stack."""

MAX_EMPTY_ITEMS: Final = 16
"""How many items an array may hold that take no bytes: a count alone must not cost memory."""

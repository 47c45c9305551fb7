"""Octets as text that keeps every octet (AMQP 0-9-1 §4.2.5.3).

Strings are UTF-8 by the specification, but clients send what they like, and it has to come out
octet for octet. So octets that are not UTF-8 become lone surrogates (PEP 383): two strings are
equal if and only if their octets are, and almost everywhere a `str` is what is wanted.
"""

from __future__ import annotations

from typing import Final

__all__ = ("MAX_SHORT_STRING_OCTETS", "is_utf8", "octets_of", "text_of")

MAX_SHORT_STRING_OCTETS: Final = 255
"""Its length is one octet."""


def text_of(octets: bytes) -> str:
    """Return octets as text; `octets_of` is the inverse."""
    return octets.decode(errors="surrogateescape")


def octets_of(text: str) -> bytes:
    """Return the octets that `text_of` made `text` from.

    Raises:
        UnicodeEncodeError: It holds a surrogate that stands for no octet.
    """
    return text.encode(errors="surrogateescape")


def is_utf8(text: str) -> bool:
    """Return whether the octets of `text` are UTF-8: names must be, to have a meaning elsewhere."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

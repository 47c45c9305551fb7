"""URLs of servers, as configurations have them: checked, and never told of with a password."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ("demand_url", "has_login")

HOST_IS_OPTIONAL = frozenset({"redis", "rediss", "unix"})
"""Schemes whose URLs may have a path alone."""


def demand_url(url: str, schemes: Collection[str], example: str, shown: str | None = None) -> None:
    """See that a text is a URL of one of these schemes, with a place and, if any, a port.

    Args:
        url: The text.
        schemes: Those that are taken.
        example: What a right one is like.
        shown: What to tell of a wrong one; None for what stands behind its login.

    Raises:
        ValueError: It is none.
    """
    if not _is_url(url, schemes):
        shown = url.rpartition("@")[2] if shown is None else shown
        raise ValueError(f"url is like {example}, not {shown!r:.80}")


def has_login(url: str) -> bool:
    """Return whether a URL names a user, or have a password."""
    parts = urlsplit(url)
    return parts.username is not None or parts.password is not None


def _is_url(url: str, schemes: Collection[str]) -> bool:
    try:
        parts = urlsplit(url)
        is_placed = bool(parts.hostname or (parts.scheme in HOST_IS_OPTIONAL and parts.path))
        return parts.scheme in schemes and is_placed and parts.port != 0
    except ValueError:  # its text may hold a password
        return False

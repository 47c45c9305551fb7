"""The names that a container gives to queues: they say where the queue is.

So whoever is told the name, as where to send replies, can send there by the default exchange of any
linked container, and no container needs to be told of each such queue.
"""

from __future__ import annotations

import secrets
from typing import Final

__all__ = ("container_in", "is_generated", "new_name")

GENERATED: Final = "amq.gen-"
TOKEN_BYTES: Final = 16

SEPARATOR: Final = "@"
"""Stands before the container; no token has it."""


def new_name(container: str) -> str:
    """Return a name that nobody can guess, for a queue of a container."""
    return f"{GENERATED}{secrets.token_urlsafe(TOKEN_BYTES)}{SEPARATOR}{container}"


def is_generated(name: str) -> bool:
    """Return whether a container has given a name."""
    return name.startswith(GENERATED)


def container_in(name: str) -> str | None:
    """Return the container that has given a name; None where none has."""
    if not is_generated(name):
        return None
    return name.partition(SEPARATOR)[2] or None

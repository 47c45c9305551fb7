"""Correlation-ids: whoever has served one call cannot forge the reply to another one."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("correlation_ids",)

ID_BYTES = 18
"""More than 128 random bits: nobody guesses one. They fill characters without a rest."""

ID_LENGTH = ID_BYTES * 8 // 6

POOL_IDS = 256
"""Drawn at once: asking the kernel for each would cost as much as encoding a message."""


def correlation_ids() -> Iterator[str]:
    """Yield ids that nobody can guess, without end.

    They are text: foreign libraries do not give every other type back as they got it.
    """
    while True:
        pool = urlsafe_b64encode(secrets.token_bytes(ID_BYTES * POOL_IDS)).decode()
        for at in range(0, len(pool), ID_LENGTH):
            yield pool[at : at + ID_LENGTH]

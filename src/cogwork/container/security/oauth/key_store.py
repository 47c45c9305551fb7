"""Keeps the public keys by which tokens are verified, and reads them again in time.

Theory of operation. Keys are read in a thread: before the first token is checked, when they are
old, and when a token names one that is not among them. However many tokens ask, one read is under
way at most, and no two begin within a few seconds, so that made-up names of keys are no way to have
the issuer flooded. A read that fails changes nothing: the old keys go on, and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from math import inf
from typing import TYPE_CHECKING

from cogwork.container.security.oauth.jwks import JwksError, read_keys

if TYPE_CHECKING:
    from cogwork.config.oauth_settings import OAuth
    from cogwork.container.security.oauth.jwks import Key

__all__ = ("KeyStore",)

PAUSE_S = 10.0
"""Between two reads that tokens, or failures, ask for."""

log = logging.getLogger("cogwork")


class KeyStore:
    """Owned by one event loop."""

    def __init__(self, options: OAuth) -> None:
        """Start with no keys yet.

        Args:
            options: Where they are.
        """
        self._options = options
        self._keys: tuple[Key, ...] = ()
        self._read_s = -inf
        self._tried_s = -inf
        self._reading: asyncio.Task[None] | None = None

    async def find(self, name: str | None, algorithm: str) -> list[Key]:
        """Return the keys that a token may be signed by: those of a name, or all if it names none.

        Args:
            name: The token's `kid`.
            algorithm: What it is signed by.
        """
        if time.monotonic() - self._read_s > self._options.refresh_s:
            await self._refreshed()
        if name is not None and not self._suiting(name, algorithm):
            await self._refreshed()
        return self._suiting(name, algorithm)

    @property
    def is_empty(self) -> bool:
        """Whether no keys have been read yet."""
        return not self._keys

    def close(self) -> None:
        """Wait for no more keys."""
        if self._reading is not None:
            self._reading.cancel()

    def _suiting(self, name: str | None, algorithm: str) -> list[Key]:
        return [
            key
            for key in self._keys
            if algorithm in key.algorithms and (name is None or name == key.name)
        ]

    async def _refreshed(self) -> None:
        """Wait for the read that is under way, or for a new one if it is time for that."""
        if self._reading is None:
            if time.monotonic() - self._tried_s < PAUSE_S:
                return
            self._reading = asyncio.get_running_loop().create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        self._tried_s = time.monotonic()
        try:
            self._keys = await asyncio.to_thread(read_keys, self._options)
            self._read_s = self._tried_s
        except JwksError as error:
            has_keys = "the old keys go on" if self._keys else "no token can be checked"
            log.warning("oauth: keys from '%s': %s; %s", self._options.jwks, error, has_keys)
        finally:
            self._reading = None

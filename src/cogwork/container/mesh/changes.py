"""Addresses of which something has changed, looked at together when the loop's turn ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Set

__all__ = ("Changes",)


class Changes:
    """What is to be looked at again; once, however often it has changed."""

    def __init__(self, settle: Callable[[Set[str]], None]) -> None:
        """Initialize it; it knows of none.

        Args:
            settle: Looks at addresses.
        """
        self._settle = settle
        self._addresses: set[str] = set()

    def add(self, address: str) -> None:
        """Have an address looked at."""
        if not self._addresses:
            asyncio.get_running_loop().call_soon(self._settle_all)
        self._addresses.add(address)

    def _settle_all(self) -> None:
        addresses, self._addresses = self._addresses, set()
        self._settle(addresses)

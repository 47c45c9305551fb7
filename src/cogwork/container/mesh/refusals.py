"""What other containers had against a link, logged once: they may be dialled again and again."""

from __future__ import annotations

import logging

__all__ = ("Refusals",)

REMEMBERED_MAX = 256
"""Strangers may have any name; those that come later are not logged."""

log = logging.getLogger("cogwork")


class Refusals:
    """What was logged last, by container."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def tell(self, container: str, why: str) -> None:
        """Log why a container refuses, unless that is known."""
        if self._told.get(container) != why and len(self._told) < REMEMBERED_MAX:
            self._told[container] = why
            log.error("container %s refuses the link: %s", container, why)

    def forget(self, container: str) -> None:
        """Forget a container that is linked now."""
        self._told.pop(container, None)

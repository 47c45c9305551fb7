"""The memory watermark: publishers wait before the kernel ends the process for want of memory.

Theory of operation. Once a second the process's memory is compared with a share of what it may
have: the machine's memory, or that of its control group where that is less. Above it clients get no
credit to send by; their consumers go on, and so do heartbeats and `$management`, so that what is
stored can be taken, or purged. Credit is given again somewhat below, so that it does not go back
and forth.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.container.connections.memory import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Watermark", "available_bytes")

RELEASE_SHARE = 0.95
"""Publishers go on once so much of the watermark is in use, and no more."""

CGROUP = Path("/sys/fs/cgroup")

log = logging.getLogger("cogwork")


def available_bytes(root: Path = CGROUP, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return how much memory the process may have: the machine's, or less by its control groups.

    Args:
        root: Where control groups are mounted, of version 2 or of version 1.
        own: Names those of this process.
    """
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            group, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            group, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        below = group / path.lstrip("/")
        for each in (below, *below.parents):
            try:
                found = min(found, int((each / name).read_text()))
            except (OSError, ValueError):  # no such file, or no limit there: `max`
                continue
    return found


class Watermark:
    """That of one container.

    Attributes:
        is_passed: Whether publishers wait.
        limit_bytes: How much memory may be in use before they do.
    """

    def __init__(self, block: Callable[[bool], None]) -> None:
        """Start with nobody wait yet.

        Args:
            block: Called with whether publishers wait from now on.
        """
        self.is_passed = False
        self.limit_bytes = 0
        self._block = block
        self._available_bytes = available_bytes()

    def look(self, share: float, used_bytes: int | None = None) -> None:
        """Compare, once a second.

        Args:
            share: Of the memory there is, how much may be in use.
            used_bytes: How much is; None for what the process has.
        """
        used = resident_bytes() if used_bytes is None else used_bytes
        self.limit_bytes = int(self._available_bytes * share)
        is_passed = used > self.limit_bytes * (RELEASE_SHARE if self.is_passed else 1.0)
        if is_passed == self.is_passed:
            return
        self.is_passed = is_passed
        what = "publishers wait" if is_passed else "publishers go on"
        log.warning(
            "%s: %d bytes of memory are in use, of %d (limits.memory_watermark = %g)",
            what,
            used,
            self.limit_bytes,
            share,
        )
        self._block(is_passed)

"""Whether a container has live traffic, by what it counts.

Theory of operation. Messages come in frames, and so do flows and outcomes; but so does what it
takes to connect and to ask where a stream ends, which clients of readers do at each range. So
frames are counted over a second, and each new connection has some that do not count. Containers
that are linked say all the time that they live, which does not count either.
"""

from __future__ import annotations

from collections import deque

__all__ = ("WATCH_S", "Traffic")

WATCH_S = 0.1
"""How often is looked."""

WINDOW_LOOKS = 10

LIVE_FRAMES = 100
"""So many within a second are live traffic."""

CONNECTION_FRAMES = 24
"""A client that reads a range sends eight, and `cogwork status` seventeen."""

LINK_FRAMES = 40
"""Within a second, of each linked container: one that has nothing to do sends half as many."""


class Traffic:
    """Of one container. Owned by the desk."""

    def __init__(self) -> None:
        """Initialize it; it has seen nothing."""
        self._seen: deque[tuple[int, int]] = deque(maxlen=WINDOW_LOOKS + 1)

    def is_live(self, frames: int, connections: int, links: int) -> bool:
        """Look once more; say whether there has been live traffic within the last second.

        Args:
            frames: How many the container has taken so far.
            connections: How many it has accepted so far.
            links: How many containers are linked.
        """
        self._seen.append((frames, connections))
        frames_before, connections_before = self._seen[0]
        excused = CONNECTION_FRAMES * (connections - connections_before) + LINK_FRAMES * links
        return frames - frames_before - excused >= LIVE_FRAMES

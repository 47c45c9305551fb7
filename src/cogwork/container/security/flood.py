"""How many events are written: a share for each peer and each kind, in windows of time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cogwork.container.security.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("WINDOW_S", "Flood")

WINDOW_S = 10.0


class Flood:
    """Counts the events of one window. It never holds more peers than it lets events through."""

    def __init__(self) -> None:
        """Begin a window."""
        self._until_s = 0.0
        self._by_kind: Counter[str] = Counter()
        self._by_peer: Counter[tuple[str, str]] = Counter()
        self._left_out: Counter[str] = Counter()

    def admits(self, kind: str, peer: str) -> bool:
        """Tell whether an event is written; it is counted if it is not.

        Args:
            kind: Its kind.
            peer: Whose doing it is.
        """
        limits = KINDS[kind]
        is_admitted = (
            self._by_kind[kind] < limits.kind_max
            and self._by_peer.get((kind, peer), 0) < limits.peer_max
        )
        if is_admitted:
            self._by_kind[kind] += 1
            self._by_peer[kind, peer] += 1
        else:
            self._left_out[kind] += 1
        return is_admitted

    def turn(self, now_s: float) -> Iterator[tuple[str, int]]:
        """Begin a new window when it is time; yield what the old one has left out.

        Args:
            now_s: The monotonic clock.

        Yields:
            A kind, and how many events of it.
        """
        if now_s < self._until_s:
            return
        left_out, self._left_out = self._left_out, Counter()
        self._until_s = now_s + WINDOW_S
        self._by_kind.clear()
        self._by_peer.clear()
        yield from left_out.items()

"""How much may pass in the long run and at once: tokens that come back with time."""

from __future__ import annotations

__all__ = ("Meter", "tokens_of")

_KIB = 1024


def tokens_of(size_bytes: int) -> int:
    """Return what a message costs: one token, and one more for each KiB."""
    return 1 + size_bytes // _KIB


class Meter:
    """Some tokens."""

    __slots__ = ("_at_s", "_burst", "_per_s", "_tokens")

    def __init__(self, per_s: float, burst: float, now_s: float) -> None:
        """Start with `burst` tokens, the most there ever are."""
        self._per_s = per_s
        self._burst = self._tokens = burst
        self._at_s = now_s

    def has_some(self, now_s: float) -> bool:
        """Return whether anything is left."""
        self._tokens = min(self._burst, self._tokens + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        return self._tokens > 0

    def take(self, tokens: float) -> None:
        """Take some, also more than there are."""
        self._tokens -= tokens

    def admits(self, tokens: float, now_s: float) -> bool:
        """Take some; tell whether there were enough."""
        self.has_some(now_s)
        self._tokens -= tokens
        return self._tokens >= 0

"""How much a neighbour may send: tokens that come back with time."""

from __future__ import annotations

from cogwork.router.mesh.bounds import TOKENS_BURST, TOKENS_PER_S

__all__ = ("Meter",)

_KIB = 1024


class Meter:
    """The tokens of one neighbour."""

    __slots__ = ("_at_s", "_tokens")

    def __init__(self, now_s: float) -> None:
        self._tokens = TOKENS_BURST
        self._at_s = now_s

    def admits(self, size_bytes: int, now_s: float) -> bool:
        """Takes the tokens of one message; tells whether there were enough.

        A clock that went back gives none and takes none.
        """
        passed_s = max(0.0, now_s - self._at_s)
        self._at_s = now_s
        self._tokens = min(TOKENS_BURST, self._tokens + passed_s * TOKENS_PER_S)
        self._tokens -= 1 + size_bytes // _KIB
        return self._tokens >= 0

"""When what keeps a stream is away: shown at once, told once it has lasted, and once it is over.

A stream that moves to another leader, or whose server is started anew, is away for a moment; nobody
needs to hear of that. One that comes and goes is told as one outage. A stream that has just been
opened and has no leader yet is still opening, as long as that does not last.
"""

from __future__ import annotations

from datetime import UTC, datetime

from cogwork.plugin.effects import Report

__all__ = ("Outage",)

LASTING_S = 3.0
"""So long it lasts before it is told, and so long all is well before it is over."""


class Outage:
    """An outage of one stream, if there is one.

    Attributes:
        problem: What is wrong, since when, and what to do; None while all is well.
        alike: What this stream and others are called that have the same trouble.
    """

    def __init__(self, address: str, engine: str) -> None:
        """Initialize it; it knows of none.

        Args:
            address: The stream's.
            engine: What keeps it, and others.
        """
        self.problem: str | None = None
        self._address = address
        self.alike = f"streams on the engine {engine}"
        self._began = datetime.min.replace(tzinfo=UTC)
        self._began_s: float | None = None
        self._ended_s: float | None = None
        self._is_told = False
        self._was_well = False

    def state(self, reason: str | None) -> str:
        """Return `open`, `away`, or `opening` where the stream has not been seen well yet.

        Args:
            reason: Why it is away at this moment; None where it is not.
        """
        if self.problem is not None:
            return "away"
        return "open" if reason is None or self._was_well else "opening"

    @property
    def is_open(self) -> bool:
        """Whether it goes on, or may not be over yet."""
        return self._began_s is not None

    def turn(self, now_s: float, reason: str | None) -> Report | None:
        """Take in how it is now; return what is to be logged.

        Args:
            now_s: The time.
            reason: Why the stream is away, and what to do; None where it is not.
        """
        if reason is None:
            return self._rest(now_s)
        self._ended_s = None
        if self._began_s is None:
            self._began_s, self._began = now_s, datetime.now(UTC)
        lasts = now_s - self._began_s >= LASTING_S
        if self._was_well or lasts:
            self.problem = f"away since {self._began:%Y-%m-%dT%H:%M:%SZ}: {reason}"
        if self._is_told or not lasts:
            return None
        self._is_told = True
        text = f"{self._address} is {self.problem}"
        return Report(text, is_warning=True, kind=f"{self.alike} are away")

    def _rest(self, now_s: float) -> Report | None:
        """End it, where all has been well for long enough."""
        self.problem = None
        self._was_well = True
        if self._began_s is None:
            return None
        if self._ended_s is None:
            self._ended_s = now_s
        if now_s - self._ended_s < LASTING_S:
            return None
        away_s, was_told = self._ended_s - self._began_s, self._is_told
        self._began_s = self._ended_s = None
        self._is_told = False
        text = f"{self._address} is back after {away_s:.0f} s"
        return Report(text, kind=f"{self.alike} are back") if was_told else None

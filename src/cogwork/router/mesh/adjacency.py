"""What one neighbour has been told and what it has answered: nothing is lost that is not repeated.

There is one for each link in use. Both ends begin with a summary of all they know; each then sends
what the other lacks. From then on it is told what is new, and again until it acknowledges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import PACE_BURST, PACE_PER_S
from cogwork.router.mesh.meter import Meter, tokens_of

if TYPE_CHECKING:
    from cogwork.router.mesh.assembly import Assembly
    from cogwork.router.mesh.bounds import Timers
    from cogwork.router.mesh.link import Link
    from cogwork.router.mesh.messages import Version

__all__ = ("Adjacency", "Retry", "Told")

ACKNOWLEDGEMENTS_MAX = 64
"""How many wait for each other at most."""

PACE_PAUSE_S = 0.1


class Retry:
    """When something unacknowledged is sent again.

    Attributes:
        due_s: When.
    """

    __slots__ = ("_pause_max_s", "_pause_s", "due_s")

    def __init__(self, timers: Timers, now_s: float) -> None:
        self._pause_s = timers.retransmit_s
        self._pause_max_s = timers.retransmit_max_s
        self.due_s = now_s + self._pause_s

    def wait(self, now_s: float) -> None:
        """Have it sent a little later, as too much was sent just now."""
        self.due_s = now_s + PACE_PAUSE_S

    def again(self, now_s: float) -> None:
        """Double the pause."""
        self._pause_s = min(2 * self._pause_s, self._pause_max_s)
        self.due_s = now_s + self._pause_s


@dataclass(slots=True)
class Told:
    """How much of one container's interests a neighbour has.

    Attributes:
        incarnation: Of which life.
        acknowledged: The sequence it has; None where a snapshot must be sent.
        sent: The sequence it was sent; None for nothing.
        retry: When that is sent again; None where all is acknowledged.
        asked_s: When we last asked it for what we lack.
    """

    incarnation: int = 0
    acknowledged: int | None = None
    sent: int | None = None
    retry: Retry | None = None
    asked_s: float = -inf


@dataclass(slots=True)
class Adjacency:
    """The conversation with one neighbour over one link.

    Attributes:
        link: The link.
        is_summed: Whether the neighbour's summary has come; before, its interests are not known.
        summary: The number of our last summary.
        summary_retry: When it is sent again; None where it is acknowledged.
        summed_s: When the neighbour's last summary came.
        compared_s: When the digests were last found equal, or the last summary was sent.
        patience_s: How long they may differ before the next summary.
        adverts: Advertisements not acknowledged, by origin.
        told: Of interests, by origin.
        unacknowledged: The origins whose interests were sent and not acknowledged.
        parts: Snapshots that have begun to arrive, by origin.
        acks: Versions of advertisements to acknowledge.
        interest_acks: Versions of interests to acknowledge.
        summary_ack: The number of a summary to acknowledge; 0 for none.
        acks_due_s: When acknowledgements go out.
        due_s: When something may have to be sent again; not before.
        pace: How much may still be sent.
    """

    link: Link
    is_summed: bool = False
    summary: int = 0
    summary_retry: Retry | None = None
    summed_s: float = -inf
    compared_s: float = 0.0
    patience_s: float = 0.0
    adverts: dict[str, Retry] = field(default_factory=dict)
    told: dict[str, Told] = field(default_factory=dict)
    unacknowledged: set[str] = field(default_factory=set)
    parts: dict[str, Assembly] = field(default_factory=dict)
    acks: dict[str, Version] = field(default_factory=dict)
    interest_acks: dict[str, Version] = field(default_factory=dict)
    summary_ack: int = 0
    acks_due_s: float = inf
    due_s: float = inf
    pace: Meter = field(default_factory=lambda: Meter(PACE_PER_S, PACE_BURST, -inf))

    def schedule(self, retry: Retry | None, timers: Timers, now_s: float) -> Retry:
        """Return when something that is about to be sent must be sent again.

        Args:
            retry: The same where it was sent before.
            timers: How long to wait.
            now_s: The time.
        """
        if retry is None:
            retry = Retry(timers, now_s)
        elif self.may_send(now_s):
            retry.again(now_s)
        if not self.may_send(now_s):
            retry.wait(now_s)
        self.expect(retry)
        return retry

    def may_send(self, now_s: float) -> bool:
        """Return whether more may be sent now."""
        return self.pace.has_some(now_s)

    def spend(self, size_bytes: int) -> None:
        """Count what was sent."""
        self.pace.take(tokens_of(size_bytes))

    def owe_ack(self, now_s: float, delay_s: float) -> None:
        """Have acknowledgements go out soon; at once where many wait."""
        is_full = len(self.acks) + len(self.interest_acks) >= ACKNOWLEDGEMENTS_MAX
        self.acks_due_s = now_s if is_full else min(self.acks_due_s, now_s + delay_s)

    def told_of(self, origin: str, incarnation: int) -> Told:
        """Return how much of a container's interests the neighbour has."""
        told = self.told.get(origin)
        if told is None or told.incarnation != incarnation:
            told = self.told[origin] = Told(incarnation)
            self.unacknowledged.discard(origin)
        return told

    def forget(self, origin: str) -> None:
        """Drop all that concerns a container."""
        self.adverts.pop(origin, None)
        self.told.pop(origin, None)
        self.unacknowledged.discard(origin)
        self.parts.pop(origin, None)

    def expect(self, retry: Retry) -> None:
        """See to it that `due_s` is not later than a retry."""
        self.due_s = min(self.due_s, retry.due_s)

    def recompute_due(self) -> None:
        """Set `due_s` to the first of all retries."""
        self.due_s = inf
        if self.summary_retry is not None:
            self.expect(self.summary_retry)
        for retry in self.adverts.values():
            self.expect(retry)
        for origin in self.unacknowledged:
            pending = self.told[origin].retry
            if pending is not None:
                self.expect(pending)

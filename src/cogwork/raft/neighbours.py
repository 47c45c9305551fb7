"""The containers that share groups with this one: who is there, and how far away."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING

from cogwork.raft.budget import Budget
from cogwork.raft.heartbeats import Beat
from cogwork.raft.round_trip import RoundTrip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.raft.membership import Membership
    from cogwork.raft.settings import Settings

__all__ = ("Neighbour", "Neighbours")

NEIGHBOUR_BYTES = 32 * 1024 * 1024
"""Entries and snapshots of all groups on the way to one container."""

ROUND_TRIPS = 4
"""An election takes longer than so many round trips: it needs two, and heartbeats some more."""

LATE_MAX_S = 0.025
"""A heartbeat that comes later than what round trips rarely exceeded counts as this much later: one
stall makes no election slow, and a line that has become slow is known for it after a few."""

CHANGE_SHARE = 0.1
"""Election times change where they would by more than this."""


class Neighbour:
    """One container.

    Attributes:
        budget: What may be on the way to it.
        incarnation: Of its present life; 0 as long as it has not been heard.
        is_absent: Nothing has been heard of it for an election time, or since it was said to be
            gone.
        heard_s: When the last frame came.
        round_trip: How long that takes.
        election_s: What its own round trips demand.
    """

    __slots__ = (
        "_beat_s",
        "_echo_us",
        "_stamped_s",
        "budget",
        "election_s",
        "heard_s",
        "incarnation",
        "is_absent",
        "round_trip",
    )

    def __init__(self, now_s: float) -> None:
        self.budget = Budget(NEIGHBOUR_BYTES)
        self.incarnation = 0
        self.is_absent = False
        self.heard_s = now_s
        self.round_trip = RoundTrip()
        self.election_s = 0.0
        self._beat_s = -inf
        self._echo_us = 0
        self._stamped_s = now_s

    def is_beat_due(self, now_s: float, pause_s: float) -> bool:
        """Return whether it is to get a heartbeat."""
        return now_s >= self._beat_s + 0.99 * pause_s

    def beat(self, incarnation: int, election_s: float, now_s: float) -> Beat:
        """Return a heartbeat."""
        self._beat_s = now_s
        held_us = int((now_s - self._stamped_s) * 1e6) if self._echo_us else 0
        election_ms = min(int(election_s * 1000), 2**32 - 1)
        return Beat(incarnation, _stamp_us(now_s), self._echo_us, held_us, election_ms)

    def hear(self, beat: Beat, now_s: float) -> bool:
        """Take a heartbeat; tell whether the container has started anew."""
        if beat.term < self.incarnation:
            return False
        is_new = beat.term > self.incarnation
        if is_new:
            self.incarnation = beat.term
            self.round_trip = RoundTrip()
        elif beat.echo_us:
            sample_s = (_stamp_us(now_s) - beat.echo_us - beat.held_us) / 1e6
            self.round_trip.note(min(sample_s, self.round_trip.bound_s + LATE_MAX_S))
        self._echo_us, self._stamped_s = beat.stamp_us, now_s
        self.election_s = beat.election_ms / 1000
        return is_new


class Neighbours:
    """All of them, by id.

    A container watches those with whom it shares a vote; a learner watches voters, and is watched
    by them more slowly. Learners do not watch each other.
    """

    __slots__ = ("_close", "_known", "_own", "_settings", "_shared")

    def __init__(self, own: str, settings: Settings) -> None:
        self._own = own
        self._settings = settings
        self._known: dict[str, Neighbour] = {}
        self._shared: Counter[str] = Counter()
        self._close: Counter[str] = Counter()

    def get(self, container: str) -> Neighbour | None:
        """Return a container that shares groups with this one."""
        return self._known.get(container)

    def at(self, container: str, now_s: float) -> Neighbour:
        """Return a container, known or not."""
        found = self._known.get(container)
        if found is None:
            found = self._known[container] = Neighbour(now_s)
        return found

    def __bool__(self) -> bool:
        return bool(self._known)

    def __iter__(self) -> Iterator[tuple[str, Neighbour]]:
        return iter(self._known.items())

    def follow(self, before: Membership | None, after: Membership | None, now_s: float) -> None:
        """Take note that a group's members have changed."""
        for membership, sign in ((before, -1), (after, 1)):
            for container, is_close in self._watched(membership):
                self._shared[container] += sign
                self._close[container] += sign * is_close
        for container, _ in self._watched(after):
            self.at(container, now_s)
        for container in [each for each in self._known if not self._shared[each]]:
            del self._known[container], self._shared[container], self._close[container]

    def _watched(self, membership: Membership | None) -> list[tuple[str, bool]]:
        if membership is None or self._own not in membership.everyone:
            return []
        voters = membership.all_voters
        watched = membership.everyone if self._own in voters else voters
        is_voter = self._own in voters
        return [
            (each, is_voter and each in voters) for each in sorted(watched) if each != self._own
        ]

    def pause_s(self, container: str, election_s: float) -> float:
        """Return how long to wait between two heartbeats."""
        pause_s = election_s / self._settings.heartbeats
        return pause_s if self._close[container] else pause_s * self._settings.learner_share

    def silence_s(self, container: str, election_s: float) -> float:
        """Return after how much silence a container is gone."""
        return election_s if self._close[container] else election_s * self._settings.learner_share

    def absent(self) -> frozenset[str]:
        """Return those that are gone."""
        return frozenset(each for each, known in self._known.items() if known.is_absent)

    def measured_s(self) -> float:
        """Return the election time that this container's own round trips to voters demand."""
        trips = [
            known.round_trip.bound_s
            for container, known in self._known.items()
            if self._close[container] and not known.is_absent
        ]
        demand_s = self._settings.election_s + ROUND_TRIPS * max(trips, default=0.0)
        return min(demand_s, self._settings.election_max_s)

    def election_s(self, present_s: float) -> float:
        """Return the election time to use: what the slowest of all demands."""
        told = [known.election_s for container, known in self._known.items() if not known.is_absent]
        wanted_s = max(self.measured_s(), *told, 0.0)
        wanted_s = min(wanted_s, self._settings.election_max_s)
        is_near = abs(wanted_s - present_s) <= CHANGE_SHARE * present_s
        return present_s if is_near else wanted_s


def _stamp_us(now_s: float) -> int:
    return max(1, int(now_s * 1e6))

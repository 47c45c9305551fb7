"""What this container wants of the others: many subscriptions become few distinct entries.

Subscriptions are counted by pattern, so that others hear of the first and of the last one only.
Figures of queues are told roughly: growth when they have doubled, decline when they have halved and
stayed so for a while. Changes are collected, so that one who comes and goes at once is never told.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import (
    ADDRESS_BYTES_MAX,
    PART_INTERESTS_MAX,
    VIRTUAL_HOST_BYTES_MAX,
)
from cogwork.router.mesh.interests import Change
from cogwork.router.mesh.messages import Interest, InterestDelta, InterestKind
from cogwork.router.mesh.serial import next_number
from cogwork.router.mesh.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.router.mesh.bounds import Timers
    from cogwork.router.mesh.interests import Interests
    from cogwork.router.mesh.messages import InterestKey

__all__ = ("LocalInterest",)

DECLINE_S = 1.0
"""How long a figure must stay low before it is told: a queue that runs empty fills again soon."""


FIGURE_MAX = 2**32 - 1
"""What fits an entry; more are told as that many."""


class LocalInterest:
    """What is wanted here, and what of it has not been told yet.

    Attributes:
        throttle: When the next deltas are due.
    """

    def __init__(self, timers: Timers) -> None:
        self.throttle = Throttle(timers.interest_hold_s, timers.interest_hold_max_s)
        self._wanted: dict[InterestKey, Interest] = {}
        self._subscriptions: dict[InterestKey, int] = {}
        self._changed: dict[InterestKey, None] = {}
        self._declining: dict[InterestKey, float] = {}
        self._next_label = 1

    def subscribe(self, virtual_host: str, pattern: str, now_s: float) -> None:
        """Count one more subscription to a topic.

        Raises:
            ValueError: The pattern, or the name of the virtual host, is too long to be told.
        """
        key = (InterestKind.TOPIC.value, virtual_host, pattern)
        _check(key)
        count = self._subscriptions.get(key, 0)
        self._subscriptions[key] = count + 1
        if count == 0:
            self._want(Interest(*key), now_s)

    def unsubscribe(self, virtual_host: str, pattern: str, now_s: float) -> None:
        """Count one less; there was one."""
        key = (InterestKind.TOPIC.value, virtual_host, pattern)
        count = self._subscriptions[key] - 1
        if count:
            self._subscriptions[key] = count
        else:
            del self._subscriptions[key]
            self._forget(key, now_s)

    def set_figures(self, interest: Interest, told: Interests, now_s: float) -> None:
        """Set the figures of an anycast address or a queue; nothing but zeros removes it.

        Raises:
            ValueError: The address, or the name of the virtual host, is too long to be told.
        """
        key = interest.key
        _check(key)
        interest = Interest(*key, *(min(figure, FIGURE_MAX) for figure in interest[3:]))
        if not any(interest[3:]):
            self._forget(key, now_s)
            return
        label = told.labels.get(key)
        known = None if label is None else told.entries[label]
        is_exact = interest.kind != InterestKind.QUEUE
        if known is None or (is_exact and interest != known) or _has_grown(interest, known):
            self._want(interest, now_s)
        elif _has_declined(interest, known):
            self._wanted[key] = interest
            self._declining.setdefault(key, now_s + DECLINE_S)
        else:
            self._wanted[key] = known
            self._declining.pop(key, None)
            self._changed.pop(key, None)

    def tell_all(self, now_s: float) -> None:
        """Have everything told anew: to a table that has just been emptied."""
        self._changed = dict.fromkeys(self._wanted)
        self.throttle.request(now_s)

    def tick(self, now_s: float) -> None:
        """Have declines told that have lasted."""
        while self._declining:
            key, due_s = next(iter(self._declining.items()))  # each waits as long: oldest first
            if now_s < due_s:
                return
            self._tell(key, now_s)

    def wake_s(self) -> float:
        """Return when `tick` or `deltas` is needed next."""
        return min(self.throttle.due_s, next(iter(self._declining.values()), inf))

    def deltas(self, own_id: str, told: Interests) -> Iterator[tuple[InterestDelta, Change]]:
        """Yield what is to be told, in order; the caller applies each before the next.

        An entry that would lead beyond the bounds is left for later; `is_held_back` says so. What
        is new comes last: what is told already is not to wait for it.
        """
        left = sorted(self._changed, key=lambda key: (key in self._wanted, key not in told.labels))
        count = PART_INTERESTS_MAX
        while left:
            done = left[:count]
            removed, added = self._portion(told, done)
            change = Change(told, {label: told.entries[label] for label in removed}, added)
            if not change.is_within_bounds:
                if len(done) > 1:
                    count = len(done) // 2
                elif done[0] in told.labels:
                    del left[0]
                else:
                    return
                continue
            del left[:count]
            for key in done:
                del self._changed[key]
            if not removed and not added:
                continue
            yield (
                InterestDelta(
                    origin=own_id,
                    incarnation=told.incarnation,
                    sequence=next_number(told.sequence),
                    digest=change.digest,
                    removed=tuple(removed),
                    added=tuple(added.items()),
                ),
                change,
            )

    @property
    def is_held_back(self) -> bool:
        """Whether something could not be told, as it would lead beyond the bounds."""
        return bool(self._changed) and self.throttle.due_s == inf

    @property
    def has_news(self) -> bool:
        """Whether something has not been told yet."""
        return bool(self._changed)

    @property
    def counts(self) -> tuple[int, int]:
        """Subscriptions, and different things wanted."""
        return sum(self._subscriptions.values()), len(self._wanted)

    def _portion(
        self, told: Interests, keys: list[InterestKey]
    ) -> tuple[list[int], dict[int, Interest]]:
        """Work out what one delta says of some keys."""
        removed: list[int] = []
        added: dict[int, Interest] = {}
        for key in keys:
            label, wanted = told.labels.get(key), self._wanted.get(key)
            if wanted is None:
                if label is not None:
                    removed.append(label)
            elif label is None:
                added[self._next_label] = wanted
                self._next_label = next_number(self._next_label)
            elif told.entries[label] != wanted:
                added[label] = wanted
        return removed, added

    def _want(self, interest: Interest, now_s: float) -> None:
        self._wanted[interest.key] = interest
        self._tell(interest.key, now_s)

    def _forget(self, key: InterestKey, now_s: float) -> None:
        if self._wanted.pop(key, None) is not None:
            self._tell(key, now_s)

    def _tell(self, key: InterestKey, now_s: float) -> None:
        self._declining.pop(key, None)
        self._changed[key] = None
        self.throttle.request(now_s)


def _check(key: InterestKey) -> None:
    _, virtual_host, address = key
    if not 0 < len(address.encode()) <= ADDRESS_BYTES_MAX:
        raise ValueError(f"1 to {ADDRESS_BYTES_MAX} bytes of address fit the mesh: {address!r:.80}")
    if len(virtual_host.encode()) > VIRTUAL_HOST_BYTES_MAX:
        raise ValueError(
            f"{VIRTUAL_HOST_BYTES_MAX} bytes of virtual host fit the mesh: {virtual_host!r:.80}"
        )


def _has_grown(new: Interest, told: Interest) -> bool:
    """Return whether a figure has come to be, or has doubled."""
    return any(now > 0 and now >= 2 * then for now, then in zip(new[3:], told[3:], strict=True))


def _has_declined(new: Interest, told: Interest) -> bool:
    """Return whether a figure has halved, or is zero now."""
    return any(2 * now <= then and now != then for now, then in zip(new[3:], told[3:], strict=True))

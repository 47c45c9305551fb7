"""Ways between replicas: each direction on its own, unreliable, in order while nothing is wrong.

A blocked way swallows what is sent and what is under way, and tells nobody.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from cogwork.sim.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from cogwork.sim.clock import Clock

__all__ = ("CALM", "Network")


CALM = Faults(delay_max_s=0.004)


class Network:
    """All ways.

    Attributes:
        faults: How bad it is now.
        blocked: The ways through which nothing passes, as (from, to).
        delayed_s: Ways that take longer, by (from, to).
        under_way: How many messages have not arrived, by sender.
    """

    def __init__(
        self, clock: Clock, random: Random, deliver: Callable[[str, str, Any], None]
    ) -> None:
        self.faults = CALM
        self.blocked: set[tuple[str, str]] = set()
        self.delayed_s: dict[tuple[str, str], float] = {}
        self.under_way: Counter[str] = Counter()
        self._clock = clock
        self._random = random
        self._deliver = deliver
        self._arrives_s: dict[tuple[str, str], float] = {}

    def send(self, sender: str, receiver: str, message: object) -> None:
        """Send a message; it arrives never, once or twice."""
        way = (sender, receiver)
        if way in self.blocked:
            return
        faults, chance = self.faults, self._random.random
        if faults.loss and chance() < faults.loss:
            return
        self._post(way, message)
        if faults.duplication and chance() < faults.duplication:
            self._post(way, message)

    def separate(self, one: Iterable[str], other: Iterable[str]) -> None:
        """Block all ways between two sides, both directions."""
        others = list(other)
        for name in one:
            for peer in others:
                self.blocked.add((name, peer))
                self.blocked.add((peer, name))

    def heal(self) -> None:
        """Open all ways, and end all faults."""
        self.blocked.clear()
        self.delayed_s.clear()
        self.faults = CALM

    def _post(self, way: tuple[str, str], message: object) -> None:
        faults = self.faults
        at_s = self._clock.now_s + faults.delay_s(self._random)
        if self.delayed_s:
            at_s += self.delayed_s.get(way, 0.0)
        if not faults.reorder or self._random.random() >= faults.reorder:
            last_s = self._arrives_s.get(way, 0.0)
            at_s = max(at_s, last_s)
            self._arrives_s[way] = at_s
        self.under_way[way[0]] += 1
        self._clock.at(at_s, partial(self._arrive, way, message))

    def _arrive(self, way: tuple[str, str], message: object) -> None:
        self.under_way[way[0]] -= 1
        if way not in self.blocked:
            self._deliver(*way, message)

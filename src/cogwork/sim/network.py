"""Connections between containers, with the faults that networks have.

A connection carries messages both ways. By default each direction keeps the order and loses
nothing, as TCP does; faults make it worse than any real one. Through a partition nothing passes,
and neither end is told.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from cogwork.sim.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from cogwork.sim.clock import Clock

__all__ = ("CALM", "Network", "Wire")


CALM = Faults(delay_max_s=0.002)


class Wire:
    """One connection.

    Attributes:
        ends: The two containers; the first dialled.
        links: The number that each end gave it; 0 where that end has closed it.
        costs: As each end has it configured; 0 for no opinion.
        arrives_s: When the last message in order arrives, by receiving end.
    """

    __slots__ = ("arrives_s", "costs", "ends", "links")

    def __init__(self, dialler: str, other: str) -> None:
        self.ends = (dialler, other)
        self.links = [0, 0]
        self.costs = [0, 0]
        self.arrives_s = [0.0, 0.0]

    @property
    def is_open(self) -> bool:
        """Whether both ends have it."""
        return all(self.links)

    @property
    def effective_costs(self) -> tuple[int, int]:
        """What each end advertises: its own cost, else the other end's, else 1."""
        one, other = self.costs
        return one or other or 1, other or one or 1


class Network:
    """All connections.

    Attributes:
        faults: How bad it is now.
        sent_bytes: By sender.
        kinds: Messages that were sent, by kind.
    """

    def __init__(self, clock: Clock, random: Random) -> None:
        self.faults = CALM
        self.sent_bytes: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self._clock = clock
        self._random = random
        self._sides: dict[str, int] = {}

    def partition(self, sides: dict[str, int]) -> None:
        """Separate containers; those not named are on side 0."""
        self._sides = dict(sides)

    def is_separated(self, one: str, other: str) -> bool:
        """Return whether a partition lies between two containers."""
        return self._sides.get(one, 0) != self._sides.get(other, 0)

    def send(self, wire: Wire, sender: int, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Send a message from one end (0 or 1); `deliver` is called as often as it arrives."""
        self.sent_bytes[wire.ends[sender]] += len(data)
        self.kinds[_kind(data)] += 1
        random, faults = self._random, self.faults
        if self.is_separated(*wire.ends) or random.random() < faults.loss:
            return
        for _ in range(2 if random.random() < faults.duplication else 1):
            self._deliver(wire, 1 - sender, data, deliver)

    def _deliver(
        self, wire: Wire, receiver: int, data: bytes, deliver: Callable[[bytes], None]
    ) -> None:
        random, faults = self._random, self.faults
        at_s = self._clock.now_s + faults.delay_s(random)
        if random.random() >= faults.reorder:
            at_s = wire.arrives_s[receiver] = max(at_s, wire.arrives_s[receiver])

        def arrive() -> None:
            if wire.is_open and not self.is_separated(*wire.ends):
                deliver(data)

        self._clock.at(at_s, arrive)


def _kind(data: bytes) -> str:
    """Return the kind of a message: its descriptor is a short symbol (AMQP 1.0 §1.6.21)."""
    return data[3 : 3 + data[2]].decode().removeprefix("cogwork:")

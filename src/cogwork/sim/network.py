"""Connections between containers, with the faults that networks have.

A connection carries messages both ways. By default each direction keeps the order and loses
nothing, as TCP does; faults make it worse than any real one. Through a partition nothing passes,
and neither end is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from cogwork.sim.clock import Clock

__all__ = ("Faults", "Network", "Wire")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How bad the network is.

    Attributes:
        delay_min_s: The shortest way.
        delay_max_s: The longest way.
        loss: The share of messages that is lost.
        duplication: The share that arrives twice.
        reorder: The share that others may overtake.
    """

    delay_min_s: float = 0.0005
    delay_max_s: float = 0.002
    loss: float = 0.0
    duplication: float = 0.0
    reorder: float = 0.0


CALM = Faults()


@dataclass(slots=True, eq=False)
class Wire:
    """One connection.

    Attributes:
        ends: The two containers; the first dialled.
        is_open: Whether anything passes.
        arrives_s: When the last message in order arrives, by receiving end.
    """

    ends: tuple[str, str]
    is_open: bool
    arrives_s: list[float]


class Network:
    """All connections.

    Attributes:
        faults: How bad it is now.
        sent_bytes: By sender.
        sent: Messages, by sender.
    """

    def __init__(self, clock: Clock, random: Random) -> None:
        self.faults = CALM
        self.sent_bytes: dict[str, int] = {}
        self.sent: dict[str, int] = {}
        self._clock = clock
        self._random = random
        self._sides: dict[str, int] = {}

    def partition(self, sides: dict[str, int]) -> None:
        """Separates containers; those not named are on side 0."""
        self._sides = dict(sides)

    def is_separated(self, one: str, other: str) -> bool:
        """Tells whether a partition lies between two containers."""
        return self._sides.get(one, 0) != self._sides.get(other, 0)

    def connect(self, dialler: str, other: str) -> Wire:
        """Makes a connection."""
        return Wire((dialler, other), is_open=True, arrives_s=[0.0, 0.0])

    def send(self, wire: Wire, sender: int, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Sends a message from one end (0 or 1); `deliver` is called as often as it arrives."""
        name = wire.ends[sender]
        self.sent_bytes[name] = self.sent_bytes.get(name, 0) + len(data)
        self.sent[name] = self.sent.get(name, 0) + 1
        random, faults = self._random, self.faults
        if self.is_separated(*wire.ends) or random.random() < faults.loss:
            return
        for _ in range(2 if random.random() < faults.duplication else 1):
            self._deliver(wire, 1 - sender, data, deliver)

    def _deliver(
        self, wire: Wire, receiver: int, data: bytes, deliver: Callable[[bytes], None]
    ) -> None:
        random, faults = self._random, self.faults
        at_s = self._clock.now_s + random.uniform(faults.delay_min_s, faults.delay_max_s)
        if random.random() >= faults.reorder:
            at_s = wire.arrives_s[receiver] = max(at_s, wire.arrives_s[receiver])

        def arrive() -> None:
            if wire.is_open and not self.is_separated(*wire.ends):
                deliver(data)

        self._clock.at(at_s, arrive)

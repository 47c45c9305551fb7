"""What can be wrong with a simulated network, be it of containers or of replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

__all__ = ("Faults",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How bad a network is.

    Attributes:
        delay_max_s: The longest way.
        delay_min_s: The shortest way.
        loss: The share of messages that is lost.
        duplication: The share that arrives twice.
        reorder: The share that others may overtake.
    """

    delay_max_s: float
    delay_min_s: float = 0.0005
    loss: float = 0.0
    duplication: float = 0.0
    reorder: float = 0.0

    def delay_s(self, random: Random) -> float:
        """Draw how long one message takes."""
        return random.uniform(self.delay_min_s, self.delay_max_s)

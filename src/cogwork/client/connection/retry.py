"""How to try again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.client.checks import demand_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("Retry",)


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to wait between attempts to connect again.

    Attributes:
        first_s: The wait after the first attempt that failed, in seconds.
        factor: How much longer each further wait is.
        longest_s: What no wait exceeds.
        jitter: By which share a wait is made shorter at random, so that the clients of a container
            that was restarted do not all come at once.
        give_up_after_s: How long to go on; None for ever.
    """

    first_s: float = 0.05
    factor: float = 2.0
    longest_s: float = 5.0
    jitter: float = 0.5
    give_up_after_s: float | None = None

    def __post_init__(self) -> None:
        demand_seconds("first_s", self.first_s)
        demand_seconds("longest_s", self.longest_s)
        demand_seconds("give_up_after_s", self.give_up_after_s)

    def waits_s(self, random: Callable[[], float]) -> Iterator[float]:
        """Yield the waits, without end.

        Args:
            random: Returns numbers from 0 to 1.
        """
        wait_s = self.first_s
        while True:
            yield wait_s * (1 - self.jitter * random())
            wait_s = min(wait_s * self.factor, self.longest_s)

"""Shares of queues, streams, exchanges and bindings: how many each client may have made.

Theory of operation. What comes into being for a client, by an attach, a message
or a request, counts for the container, the client's user and its source address, until it is
deleted. What the configuration, the cluster or the disk declares counts for the container alone,
and is never refused: that has been agreed on already. What another container has made here for its
clients counts in their shares there. Here it is refused where the container has too many.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.container.connections.shares import ALL, NOBODYS, Holder, Rate, Tally
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.config.limits import Limits
    from cogwork.container.connections.shares import OwnLimits, Use

__all__ = ("BINDINGS", "EXCHANGES", "FROM_AFAR", "LIMITED_KINDS", "Makers", "NodeShares")

LIMITED_KINDS = ("queue", "stream")
"""Kinds of nodes that count."""

EXCHANGES, BINDINGS = "exchanges", "bindings"
"""What counts and is no node: one node has all exchanges of a virtual host."""

Makers = tuple[Holder, ...]
"""For whom something is made: the container among them, or nobody where it is never refused."""

FROM_AFAR: Makers = (ALL,)
"""Who has another container make something here."""

DECLARE_WAIT_S = 10.0
"""An attach that is to make a node waits so long at most for its turn, then is refused."""


class NodeShares:
    """Those of one container, over all its virtual hosts."""

    def __init__(self, limits: Limits) -> None:
        """Nobody has any.

        Args:
            limits: How many there may be.
        """
        self._tallies = {kind: Tally(f"{kind}s") for kind in LIMITED_KINDS}
        self._tallies |= {what: Tally(what) for what in (EXCHANGES, BINDINGS)}
        self._rate = Rate()
        self.limit(limits)

    def limit(self, limits: Limits, own: OwnLimits = NOBODYS) -> None:
        """Take over limits, for what is made from now on; `own` are those of single users."""
        self._per_s = limits.declaration_rate_per_source
        for tally in self._tallies.values():
            tally.limit(limits, own)

    def wait_s(self, makers: Makers) -> float:
        """Count one more that is made; return how long that has to wait.

        Raises:
            Refused: Too many wait already.
        """
        return self._wait_s(makers, DECLARE_WAIT_S)

    def demand_turn(self, makers: Makers) -> None:
        """Count one more that is made now.

        Raises:
            Refused: It would have to wait.
        """
        self._wait_s(makers, 0.0)

    def _wait_s(self, makers: Makers, longest_s: float) -> float:
        source = next((each for each in makers if each.kind == "source"), None)
        if source is None:
            return 0.0
        wait_s = self._rate.wait_s(source, time.monotonic(), self._per_s, longest_s)
        if wait_s is None:
            text = (
                f"{source} makes too many queues and streams a second "
                f"(limits.declaration_rate_per_source = {self._per_s:g})"
            )
            raise Refused(text, Condition.RESOURCE_LIMIT_EXCEEDED)
        return wait_s

    def demand(self, kind: str, makers: Makers) -> None:
        """See that one more may be made.

        Raises:
            Refused: One of the makers has as many as it may have.
        """
        tally = self._tallies.get(kind)
        excess = None if tally is None else tally.excess(makers)
        if excess is not None:
            raise Refused(str(excess), Condition.RESOURCE_LIMIT_EXCEEDED)

    def uses(self) -> Iterator[Use]:
        """Yield who has most, for each limit."""
        for tally in self._tallies.values():
            yield from tally.uses()

    def count_of(self, kind: str, holder: Holder) -> int:
        """Return how many of a kind a holder has."""
        return self._tallies[kind].count_of(holder)

    def take(self, kind: str, makers: Makers) -> None:
        """Count one that has been made."""
        if kind in self._tallies:
            self._tallies[kind].take(makers or FROM_AFAR)

    def give_back(self, kind: str, makers: Makers) -> None:
        """Count one no longer."""
        if kind in self._tallies:
            self._tallies[kind].give_back(makers or FROM_AFAR)

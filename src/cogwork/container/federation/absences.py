"""Containers that are waited for: they share queues on disk, and cannot be reached.

Theory of operation. One that cannot be reached is away from when that is seen first. What it said
of a queue may be forgotten before it is back, or by its being back in a new life, which says so
anew: until then, what it said in the old one counts. One that takes back what it said, as it
leaves, is not away.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.container.mesh.service import MeshService
    from cogwork.router.mesh.messages import Interest

__all__ = ("Absences",)


class _Claim(NamedTuple):
    """What a container said of a queue in a life that is over.

    Attributes:
        interest: What it said.
        until_s: When that counts no longer.
    """

    interest: Interest
    until_s: float


class Absences:
    """Who is away, of one virtual host."""

    def __init__(self, mesh: MeshService) -> None:
        """Initialize it; it misses nobody yet.

        Args:
            mesh: Knows who can be reached.
        """
        self._mesh = mesh
        self._since_s: dict[str, float] = {}
        self._claims: dict[str, dict[str, _Claim]] = {}
        self._lives: dict[str, int] = {}

    def begin(self, container: str, interest: Interest) -> None:
        """Take note that something a container said holds no longer."""
        if not self._is_lost(container):
            return
        until_s = self._away_since_s(container) + self._mesh.owner_timeout_s
        self._claims.setdefault(interest.address, {})[container] = _Claim(interest, until_s)

    def end(self, container: str, address: str) -> None:
        """Take note that a container says something of a queue."""
        self._lives[container] = self._mesh.mesh.database.incarnation(container)
        claims = self._claims.get(address, {})
        claims.pop(container, None)
        if not claims:
            self._claims.pop(address, None)

    def sweep(self) -> None:
        """Forget what counts no longer: its container may never be back, its queue be deleted."""
        now_s = time.monotonic()
        for address, claims in list(self._claims.items()):
            for container in [each for each, claim in claims.items() if now_s >= claim.until_s]:
                del claims[container]
            if not claims:
                del self._claims[address]

    def of(self, address: str, count: int, said: Mapping[str, Interest]) -> dict[str, int]:
        """List who is waited for at a queue, with the partitions that each said it holds.

        Args:
            address: The queue.
            count: How many partitions it has.
            said: What containers say of it that are still known, reachable or not.
        """
        now_s = time.monotonic()
        away = {}
        for container, claim in self._claims.get(address, {}).items():
            if claim.interest.consumers == count and now_s < claim.until_s:
                away[container] = claim.interest.producers
        for container, interest in said.items():
            if self._is_reachable(container):
                self._since_s.pop(container, None)
                continue
            until_s = self._away_since_s(container) + self._mesh.owner_timeout_s
            if interest.consumers == count and now_s < until_s:
                away[container] = interest.producers
        return away

    def _away_since_s(self, container: str) -> float:
        return self._since_s.setdefault(container, time.monotonic())

    def _is_reachable(self, container: str) -> bool:
        return self._mesh.mesh.routes.is_reachable(container)

    def _is_lost(self, container: str) -> bool:
        """Return whether a container did not take back itself what it said."""
        incarnation = self._mesh.mesh.database.incarnation(container)
        return incarnation != self._lives.get(container) or not self._is_reachable(container)

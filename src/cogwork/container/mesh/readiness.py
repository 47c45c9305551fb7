"""When a container that has started knows enough of the others to take clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.mesh.service import MeshService

__all__ = ("Readiness",)


class Readiness:
    """Ready once a neighbour's knowledge is this container's, too, or there is nobody to ask.

    Attributes:
        is_reached: Whether it is ready.
        conditions: What else has to be so.
    """

    def __init__(self, mesh: MeshService, timeout_s: float) -> None:
        """Is ready, for as long as nobody is to be asked.

        Args:
            mesh: The other containers.
            timeout_s: So long they are waited for.
        """
        self.is_reached = True
        self.conditions: list[Callable[[], bool]] = []
        self._mesh = mesh
        self._timeout_s = timeout_s
        self._started_s = 0.0
        self._calls: list[Callable[[], None]] = []

    def start(self, now_s: float) -> None:
        """Wait for the neighbours, where there are to be any."""
        self._started_s = now_s
        self.is_reached = not self._mesh.diallers and self.holds_all()

    def when_reached(self, call: Callable[[], None]) -> None:
        """Call once it is ready."""
        self._calls.append(call)

    def look(self, now_s: float) -> None:
        """Find out whether it is ready now."""
        if self.is_reached:
            return
        is_late = now_s - self._started_s >= self._timeout_s
        if is_late or (self._knows_others() and self.holds_all()):
            self.is_reached = True
            calls, self._calls = self._calls, []
            for call in calls:
                call()

    def _knows_others(self) -> bool:
        neighbours = self._mesh.mesh.neighbours
        if any(link.digest == neighbours.digest for link in neighbours.active.values()):
            return True
        is_alone = all(each.has_failed and each.peer_link is None for each in self._mesh.diallers)
        return is_alone and not self._mesh.peer_links

    def holds_all(self) -> bool:
        """Return whether all conditions hold, however late it is."""
        return all(condition() for condition in self.conditions)

"""One container of the world: its mesh, its connections, and what its effects have told it."""

from __future__ import annotations

from collections import Counter
from math import inf
from time import process_time
from typing import TYPE_CHECKING

from cogwork.router.mesh.effects import (
    InterestChanged,
    NeighbourDown,
    NeighbourUp,
    PathsChanged,
    Report,
)
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.own import Own

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.router.mesh.bounds import Timers
    from cogwork.router.mesh.effects import Effect, Reason
    from cogwork.router.mesh.messages import Interest, InterestKey
    from cogwork.sim.network import Wire

__all__ = ("Host",)


class Host:
    """One container of the world, alive or not.

    Attributes:
        name: Its id.
        ahead_s: How far its clock is ahead of the world's.
        mesh: Its view of the mesh; None while it is dead.
        incarnation: Of its last life.
        wires: Its connections by link number, with the end that is its own.
        dials: Whom it dials, with costs; the same container may stand there more than once.
        dialled: The link that each place in `dials` has led to.
        waiting: What it will do when it is no longer stopped; None while it runs.
        subscriptions: What its clients want.
        figures: Its queues and anycast addresses.
        reports: What it reported, of all its lives.
        closed: Why links were closed, here or by the other end.
        links: The link in use to each neighbour, as its effects tell.
        next_hops: The next hops, as its effects tell.
        interests: What each container wants by label, as its effects tell.
        wake_s: When its next tick is planned, by its clock; infinity for no plan.
        cpu_s: What its mesh has taken.
    """

    def __init__(self, name: str, ahead_s: float) -> None:
        self.name = name
        self.ahead_s = ahead_s
        self.mesh: Mesh | None = None
        self.incarnation = 0
        self.wires: dict[int, tuple[Wire, int]] = {}
        self.dials: list[tuple[str, int]] = []
        self.dialled: dict[int, int] = {}
        self.waiting: list[Callable[[], None]] | None = None
        self.subscriptions: Counter[str] = Counter()
        self.figures: dict[InterestKey, Interest] = {}
        self.reports: list[Report] = []
        self.closed: list[Reason] = []
        self.links: dict[str, int] = {}
        self.next_hops: dict[str, str] = {}
        self.interests: dict[str, dict[int, Interest]] = {}
        self.wake_s = inf
        self.cpu_s = 0.0
        self._last_link = 0

    def live(self, incarnation: int, timers: Timers, now_s: float) -> Mesh:
        """Begin a life: nothing is left of the one before."""
        self.incarnation = incarnation
        own = Own(id=self.name, incarnation=incarnation, timers=timers)
        self.mesh = Mesh(own, now_s)
        self.die_down()
        return self.mesh

    def die_down(self) -> None:
        """Forget what belonged to a life."""
        self.wires, self.dialled, self.waiting = {}, {}, None
        self.subscriptions, self.figures = Counter(), {}
        self.links, self.next_hops, self.interests = {}, {}, {}
        self.wake_s = inf

    def new_link(self) -> int:
        """Return a number that no link had."""
        self._last_link += 1
        return self._last_link

    def ask(self, question: Callable[[Mesh], list[Effect]]) -> list[Effect]:
        """Have the mesh answer an event, and count what that takes; the dead say nothing."""
        if self.mesh is None:
            return []
        began_s = process_time()
        effects = question(self.mesh)
        self.cpu_s += process_time() - began_s
        return effects

    def note(self, effect: Effect) -> None:
        """Follow what an effect tells, as a container does."""
        if isinstance(effect, Report):
            self.reports.append(effect)
        elif isinstance(effect, NeighbourUp):
            self.links[effect.neighbour] = effect.link
        elif isinstance(effect, NeighbourDown):
            del self.links[effect.neighbour]
        elif isinstance(effect, PathsChanged):
            for container, hop in effect.next_hops.items():
                if hop is None:
                    del self.next_hops[container]
                else:
                    self.next_hops[container] = hop
        elif isinstance(effect, InterestChanged):
            self._note_interest(effect)

    def _note_interest(self, effect: InterestChanged) -> None:
        entries = self.interests.setdefault(effect.origin, {})
        for label, entry in effect.removed.items():
            assert entries.pop(label) == entry, "what goes is what was told"
        entries.update(effect.added)
        if not entries:
            del self.interests[effect.origin]

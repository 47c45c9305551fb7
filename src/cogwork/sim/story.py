"""A seeded story: a mesh that is disturbed, left in peace, and checked, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.sim import topologies
from cogwork.sim.checkers import Broken, check_all
from cogwork.sim.network import Faults
from cogwork.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("CONVERGENCE_S", "QUIET_S", "Story")

CONVERGENCE_S = 10.0
"""After so long a quiet world must be right: three hellos to notice, retries with their pauses."""

QUIET_S = 1.0
"""For so long it must stay right."""

PATTERNS = ["#", "flights.#", "flights.*.LAX", "flights.JFK.#", "prices.EUR", "prices.*"]


class Story:
    """One world and what happens to it.

    Attributes:
        world: The world.
        told: What happened, in order.
    """

    def __init__(self, seed: int, containers: int) -> None:
        self.world = World(seed)
        self.told: list[str] = []
        self._subscriptions: list[tuple[str, str]] = []
        random = self.world.random
        names = [f"c{at:03}" for at in range(containers)]
        random.shuffle(names)
        self._names = names
        self.world.add(*names)
        self._edges = topologies.chords(names, containers // 2, random)
        for one, other in self._edges:
            self.world.join([(one, other)], cost=random.choice((0, 0, 1, 2, 10)))
        for _ in range(containers):
            self._subscribe()

    def run(self, chapters: int, events: int = 5) -> None:
        """Runs it.

        Raises:
            Broken: A rule does not hold.
        """
        self.settle()
        for _ in range(chapters):
            self.world.network.faults = self._faults()
            for _ in range(events):
                self._happen()
                self.world.run(self.world.random.uniform(0, 2))
            self.heal()
            self.settle()

    def heal(self) -> None:
        """Ends what is disturbed."""
        self.world.network.faults = Faults()
        self.world.network.partition({})
        if self.world.random.random() < 0.5:
            for name in sorted(set(self.world.hosts) - set(self.world.alive)):
                self.world.start(name)

    def settle(self) -> None:
        """Leaves the world in peace, and checks it."""
        self.world.run(CONVERGENCE_S)
        try:
            check_all(self.world)
            self.world.run(QUIET_S)
            check_all(self.world)
        except Broken as broken:
            raise Broken(self.world, f"{broken}; after {'; '.join(self.told[-12:])}") from broken

    def end(self) -> None:
        """Has all clients leave, and the dead be forgotten.

        Raises:
            Broken: Something of them is still known.
        """
        for name in sorted(self.world.alive):
            for at, pattern in list(self._subscriptions):
                if at == name:
                    self.world.unsubscribe(name, pattern)
                    self._subscriptions.remove((at, pattern))
        alive = self.world.alive
        self.world.run(self.world.timers.max_age_s + CONVERGENCE_S)
        for name, mesh in alive.items():
            if set(mesh.database.records) - set(alive):
                raise Broken(self.world, f"{name} still knows the dead")
            if mesh.interests.table.keys:
                raise Broken(self.world, f"{name} still knows what nobody wants")
        check_all(self.world)

    def _happen(self) -> None:
        events: list[Callable[[], str]] = [
            self._crash,
            self._start,
            self._restart,
            self._subscribe,
            self._unsubscribe,
            self._cut,
            self._partition,
            self._cost,
        ]
        told = self.world.random.choice(events)()
        self.told.append(f"{self.world.clock.now_s:.3f} {told}")

    def _faults(self) -> Faults:
        random = self.world.random
        return Faults(
            delay_max_s=random.choice((0.002, 0.05, 0.3)),
            loss=random.choice((0, 0, 0.05, 0.2)),
            duplication=random.choice((0, 0.1)),
            reorder=random.choice((0, 0, 0.2)),
        )

    def _some(self) -> str:
        return self.world.random.choice(sorted(self.world.alive))

    def _crash(self) -> str:
        if len(self.world.alive) < 2:
            return "nothing"
        name = self._some()
        self._subscriptions = [each for each in self._subscriptions if each[0] != name]
        self.world.crash(name)
        return f"crash {name}"

    def _start(self) -> str:
        dead = sorted(set(self.world.hosts) - set(self.world.alive))
        if not dead:
            return "nothing"
        name = self.world.random.choice(dead)
        self.world.start(name)
        return f"start {name}"

    def _restart(self) -> str:
        told = self._crash()
        if told == "nothing":
            return told
        name = told.split()[1]
        self.world.start(name)
        return f"restart {name}"

    def _subscribe(self) -> str:
        name = self._some()
        pattern = self.world.random.choice(PATTERNS)
        self._subscriptions.append((name, pattern))
        self.world.subscribe(name, pattern)
        return f"{name} subscribes to {pattern}"

    def _unsubscribe(self) -> str:
        if not self._subscriptions:
            return "nothing"
        at = self.world.random.randrange(len(self._subscriptions))
        name, pattern = self._subscriptions.pop(at)
        self.world.unsubscribe(name, pattern)
        return f"{name} unsubscribes from {pattern}"

    def _cut(self) -> str:
        wires = [
            (name, link) for name, host in self.world.hosts.items() for link in sorted(host.wires)
        ]
        if not wires:
            return "nothing"
        name, link = self.world.random.choice(wires)
        self.world.cut(name, link)
        return f"cut link {link} of {name}"

    def _partition(self) -> str:
        sides = {name: self.world.random.randrange(2) for name in self._names}
        if self.world.random.random() < 0.5:
            sides = {self._some(): 1}
        self.world.network.partition(sides)
        return f"separate {sorted(name for name, side in sides.items() if side)}"

    def _cost(self) -> str:
        name = self._some()
        links = sorted(self.world.hosts[name].wires)
        if not links:
            return "nothing"
        link, cost = self.world.random.choice(links), self.world.random.randint(1, 9)
        self.world.set_cost(name, link, cost)
        return f"link {link} of {name} costs {cost}"

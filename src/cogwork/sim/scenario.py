"""A seeded scenario: a mesh that is disturbed, left in peace, and checked, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.mesh.messages import Interest, InterestKind
from cogwork.sim.checkers import Broken, check_all, check_nothing_left, run_quietly
from cogwork.sim.faults import Faults
from cogwork.sim.network import CALM
from cogwork.sim.topologies import SHAPES
from cogwork.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("CONVERGENCE_S", "QUIET_S", "Scenario")

CONVERGENCE_S = 10.0
"""After so long a quiet world must be right: three hellos to notice, retries with their pauses."""

QUIET_S = 1.0
"""For so long it must stay right."""

PATTERNS = ("#", "flights.#", "flights.*.LAX", "flights.JFK.#", "prices.EUR", "prices.*", "*")

COSTS = (0, 0, 0, 1, 2, 10)
"""Of links; 0 for no opinion."""

TOLD_MAX = 16
"""So many of the last events a failure names."""


class Scenario:
    """One world and what happens to it.

    Attributes:
        world: The world.
        shape: How its containers were linked in the beginning.
        told: What happened, in order.
    """

    def __init__(self, seed: int, containers: int, shape: str = "") -> None:
        """Begin a scenario.

        Args:
            seed: Everything follows from it.
            containers: How many.
            shape: One of `topologies.SHAPES`; none: as the seed says.
        """
        self.world = World(seed)
        self.told: list[str] = []
        random = self.world.random
        self.shape = shape or random.choice(sorted(SHAPES))
        self._names = [f"c{at:03}" for at in range(containers)]
        random.shuffle(self._names)
        self.world.add(*self._names)
        for edge in SHAPES[self.shape](self._names, random):
            self.world.join([edge], cost=random.choice(COSTS))
        for _ in range(containers):
            self._subscribe()

    def run(self, chapters: int, events: int = 5) -> None:
        """Run it: in each chapter so many events, peace, and what must be true then.

        Raises:
            Broken: A rule does not hold.
        """
        try:
            self._settle()
            for _ in range(chapters):
                self._disturb(events)
                self._settle()
        except AssertionError as broken:
            raise self._with_scenario(broken) from broken

    def end(self) -> None:
        """Have all clients leave, and the dead be forgotten.

        Raises:
            Broken: Something of them is still known.
        """
        self._pacify(1.0)
        self._settle()
        for name in sorted(self.world.alive):
            host = self.world.hosts[name]
            for pattern in sorted(host.subscriptions.elements()):
                self.world.unsubscribe(name, pattern)
            for interest in list(host.figures.values()):
                self.world.set_interest(name, Interest(*interest.key))
        self.world.run(self.world.timers.max_age_s + CONVERGENCE_S)
        try:
            check_all(self.world)
            check_nothing_left(self.world)
            run_quietly(self.world, QUIET_S)
        except AssertionError as broken:
            raise self._with_scenario(broken) from broken

    def _with_scenario(self, broken: AssertionError) -> Broken:
        return Broken(self.world, f"{self.shape}: {broken}; after {self.told[-TOLD_MAX:]}")

    def _disturb(self, events: int) -> None:
        random = self.world.random
        self.world.network.faults = Faults(
            delay_max_s=random.choice((0.002, 0.05, 0.3)),
            loss=random.choice((0, 0, 0.05, 0.2)),
            duplication=random.choice((0, 0.1)),
            reorder=random.choice((0, 0, 0.2)),
        )
        for _ in range(events):
            self._happen()
            self.world.run(random.uniform(0, 2))
        self._pacify(0.7)

    def _pacify(self, chance: float) -> None:
        """End what is disturbed; partitions and deaths may last."""
        world = self.world
        world.network.faults = CALM
        if world.random.random() < chance:
            world.network.partition({})
        for name, host in world.hosts.items():
            if host.waiting is not None:
                world.resume(name)
        if world.random.random() < chance:
            for name in sorted(set(world.hosts) - set(world.alive)):
                world.start(name)

    def _settle(self) -> None:
        """Leave the world in peace, and check it."""
        self.world.run(CONVERGENCE_S)
        check_all(self.world)
        run_quietly(self.world, QUIET_S)
        check_all(self.world)

    def _happen(self) -> None:
        events: list[Callable[[], str]] = [
            self._crash,
            self._leave,
            self._start,
            self._restart,
            self._stop,
            self._subscribe,
            self._unsubscribe,
            self._set_figures,
            self._join,
            self._part,
            self._cut,
            self._partition,
            self._cost,
        ]
        told = self.world.random.choice(events)()
        if told:
            self.told.append(f"{self.world.clock.now_s:.3f} {told}")

    def _some(self) -> str:
        """Return a container that runs."""
        running = [name for name in self.world.alive if self.world.hosts[name].waiting is None]
        return self.world.random.choice(sorted(running)) if running else ""

    def _some_to_lose(self) -> str:
        """Return a container that runs, and is not the last one."""
        return self._some() if len(self.world.alive) > 1 else ""

    def _some_link(self) -> tuple[str, int] | None:
        """Return a container that runs and a link of it."""
        name = self._some()
        links = sorted(self.world.hosts[name].wires) if name else []
        return (name, self.world.random.choice(links)) if links else None

    def _crash(self) -> str:
        name = self._some_to_lose()
        if not name:
            return ""
        self.world.crash(name)
        return f"crash {name}"

    def _leave(self) -> str:
        name = self._some_to_lose()
        if not name:
            return ""
        self.world.leave(name)
        return f"leave {name}"

    def _start(self) -> str:
        dead = sorted(set(self.world.hosts) - set(self.world.alive))
        if not dead:
            return ""
        name = self.world.random.choice(dead)
        self.world.start(name)
        return f"start {name}"

    def _restart(self) -> str:
        name = self._some_to_lose()
        if not name:
            return ""
        self.world.crash(name)
        self.world.start(name)
        return f"restart {name}"

    def _stop(self) -> str:
        name = self._some_to_lose()
        if not name:
            return ""
        self.world.stop(name)
        for_s = self.world.random.choice((0.5, 4.0))

        def resume() -> None:
            if self.world.hosts[name].waiting is not None:
                self.world.resume(name)

        self.world.clock.at(self.world.clock.now_s + for_s, resume)
        return f"stop {name} for {for_s} s"

    def _subscribe(self) -> str:
        name = self._some()
        if not name:
            return ""
        pattern = self.world.random.choice(PATTERNS)
        self.world.subscribe(name, pattern)
        return f"{name} subscribes to {pattern}"

    def _unsubscribe(self) -> str:
        name = self._some()
        patterns = sorted(+self.world.hosts[name].subscriptions) if name else []
        if not patterns:
            return ""
        pattern = self.world.random.choice(patterns)
        self.world.unsubscribe(name, pattern)
        return f"{name} unsubscribes from {pattern}"

    def _set_figures(self) -> str:
        name, random = self._some(), self.world.random
        if not name:
            return ""
        if random.random() < 0.3:
            interest = Interest(InterestKind.ANYCAST, "", "service", random.randrange(2))
        else:
            consumers, backlog = random.randrange(3), random.choice((0, 0, 10, 11, 1000))
            interest = Interest(InterestKind.QUEUE, "", "work", consumers, 0, backlog)
        self.world.set_interest(name, interest)
        return f"{name} has {tuple(interest)}"

    def _join(self) -> str:
        one, other = self._some(), self.world.random.choice(self._names)
        if not one or one == other:
            return ""
        cost = self.world.random.choice(COSTS)
        self.world.join([(one, other)], cost)
        return f"join {one} to {other}"

    def _part(self) -> str:
        found = self._some_link()
        if found is None:
            return ""
        name, link = found
        wire, side = self.world.hosts[name].wires[link]
        other = wire.ends[1 - side]
        self.world.part(name, other)
        return f"part {name} from {other}"

    def _cut(self) -> str:
        found = self._some_link()
        if found is None:
            return ""
        self.world.cut(*found)
        return f"cut link {found[1]} of {found[0]}"

    def _partition(self) -> str:
        random = self.world.random
        sides = {name: random.randrange(2) for name in self._names}
        if random.random() < 0.5:
            sides = {random.choice(self._names): 1}
        self.world.network.partition(sides)
        return f"separate {sorted(name for name, side in sides.items() if side)}"

    def _cost(self) -> str:
        found = self._some_link()
        if found is None:
            return ""
        cost = self.world.random.randint(0, 9)
        self.world.set_cost(*found, cost)
        return f"link {found[1]} of {found[0]} costs {cost}"

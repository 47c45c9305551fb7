"""A seeded scenario: a small group is disturbed while clients append, is healed, and must converge.

Each seed draws which kinds of disturbance there are at all: scenarios with few kinds reach states
that scenarios with all of them never do.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from cogwork.sim.faults import Faults
from cogwork.sim.raft.calm import stay_calm
from cogwork.sim.raft.clients import Client
from cogwork.sim.raft.figure_8 import play_figure_8
from cogwork.sim.raft.fresh_reads import read_afresh
from cogwork.sim.raft.limits import draw_limits
from cogwork.sim.raft.losses import lose_leaver, lose_promoter, lose_sleeper
from cogwork.sim.raft.members import change_members, draw_members, retire
from cogwork.sim.raft.returns import leave_and_return, outlast_election
from cogwork.sim.raft.scenes import SCENES, Scene
from cogwork.sim.raft.torn_writes import tear_write
from cogwork.sim.raft.wiped import has_forgotten, wipe
from cogwork.sim.raft.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("CONVERGENCE_S", "Scenario")

CONVERGENCE_S = 12.0
"""After healing everything must be in order within so long."""

LEADERLESS_S = 5.0
"""After healing nobody leads for so long: it takes the longest time-out, on a slow clock, and a
few elections that nobody wins. A learner's time-out takes longer."""

SYNCS_OF_ELECTION, SYNCS = 6, 40
"""Where disks are slow in the end, too, these take so many synchronisations longer: an election
takes three, to bring a member up to date some more."""

STEP_S = 0.1

MINORITY_SHARE = 0.2
"""In so many scenarios the others must first come to an end without one of them."""

HOSTED_SHARE = 0.2
"""So many scenarios run on hosts, with frames of octets; it takes them longer."""

PATIENT_MAX_S = 0.8
"""Before the first disturbance."""


class Scenario:
    """One world and what happens to it.

    Attributes:
        scene: What sort of scenario it is.
        world: The world.
        counts: What happened, by kind.
    """

    def __init__(
        self,
        seed: int,
        scene: Scene | None = None,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        """Begin a scenario.

        Args:
            seed: Everything follows from it.
            scene: What sort of scenario it is; none: as the seed says.
            tell: Takes the lines of a trace.
        """
        random = Random(seed)
        if scene is None:
            scene = random.choices(SCENES, [each.share for each in SCENES])[0]
        self.scene = scene
        size = random.choices([n for n, _ in scene.sizes], [share for _, share in scene.sizes])[0]
        limits = draw_limits(random, scene.settings, scene.snapshot_every)
        is_hosted = random.random() < HOSTED_SHARE or scene.is_hosted
        sync_s = random.choice(scene.syncs_s) if scene.syncs_s else 0.0
        self.world = World(random, size, limits, is_hosted=is_hosted, sync_s=sync_s, tell=tell)
        self.counts: Counter[str] = Counter([f"scene {scene.name}"])
        self._random = random
        self._doomed: tuple[str, ...] = ()
        kinds = list(scene.kinds)
        if scene.is_swarm:
            kinds = [kind for kind in kinds if random.random() < 0.45] or ["restart"]
        self._kinds = kinds
        self._weights = [scene.kinds[kind] for kind in kinds]
        self._moves = {kind: getattr(self, f"_{kind}") for kind in kinds}

    def run(self) -> None:
        """Run it.

        Raises:
            Broken: A rule does not hold.
        """
        world, random = self.world, self._random
        scene = self.scene
        for number in range(random.randint(1, 3) if scene.has_clients else 0):
            self._add_client(number)
        if scene.is_rough:
            self._weather()
        world.run(random.uniform(0.2, PATIENT_MAX_S))
        for _ in range(random.randint(*scene.moves)):
            kind = random.choices(self._kinds, self._weights)[0]
            self.counts[kind] += 1
            self._moves[kind]()
            world.run(random.expovariate(scene.pace))
            if self._doomed:
                break
        self.converge()
        if scene.is_calm_after:
            stay_calm(world)

    def converge(self) -> None:
        """End what is disturbed; then all must come to the same, and to an end.

        Raises:
            Broken: They do not.
        """
        world, random = self.world, self._random
        world.heal()
        gone = self._doomed
        if not gone and random.random() < MINORITY_SHARE and not world.lost:
            gone = (random.choice(sorted(world.disks)),)
        if gone and not world.lost and not has_forgotten(world) and world.can_lose(*gone):
            for name in gone:
                self._lose_one(name)
            self._wait()
            world.heal()
        self._wait()
        world.check_end()

    def _lose_one(self, name: str) -> None:
        """One is gone, or cannot hear, or cannot speak: the others must do without it."""
        world = self.world
        world.excused.add(name)
        how = self._random.choice(("gone", "deaf", "mute", "cut off"))
        self.counts[f"without one: {how}"] += 1
        if how == "gone":
            world.crash(name)
        for other in world.disks:
            if how in ("deaf", "cut off"):
                world.block(other, name)
            if how in ("mute", "cut off"):
                world.block(name, other)

    def _wait(self) -> None:
        world = self.world
        end_s, answered = 0.0, -1
        leaderless_s = LEADERLESS_S + SYNCS_OF_ELECTION * world.sync_s
        convergence_s = CONVERGENCE_S + SYNCS * world.sync_s
        led_s = world.clock.now_s
        while not world.is_converged():
            if world.leader:
                led_s = world.clock.now_s
            elif world.clock.now_s >= led_s + leaderless_s:
                raise world.broken(f"nobody has led for {leaderless_s} s, though all is well")
            # A client that is unlucky has to ask again and again, and has been answered meanwhile.
            if answered != (answered := sum(client.answered for client in world.clients)):
                end_s = world.clock.now_s + convergence_s
            if world.clock.now_s >= end_s:
                raise world.broken(f"it has not converged after {convergence_s} s: {world.why()}")
            world.run(STEP_S)

    def _add_client(self, number: int) -> None:
        random, is_busy = self._random, self.scene.is_busy
        client = Client(
            self.world,
            f"p{number}",
            counts=random.random() < 0.8,
            window=random.choice((4, 8) if is_busy else (1, 2, 4)),
            left=random.randint(10, 25) if is_busy else random.randint(3, 12),
            pace_s=random.choice((0.01, 0.03) if is_busy else (0.02, 0.1, 0.3)),
        )
        self.world.clients.append(client)
        client.start()

    # Disturbances.

    def _crash(self) -> None:
        self.world.crash(self._somebody())

    def _restart(self) -> None:
        world, name = self.world, self._somebody()
        world.crash(name)
        world.after(self._random.choice((0.0, 0.02, 0.5)), lambda: world.start(name))

    def _blink(self) -> None:
        """One crashes and is back at once."""
        name = self._somebody()
        self.world.crash(name)
        self.world.start(name)

    def _power(self) -> None:
        """All lose their power at once."""
        world, random = self.world, self._random
        for name in world.running:
            world.crash(name)
        for name in world.stopped:
            world.after(random.uniform(0.01, 0.3), partial(world.start, name))

    def _partition(self) -> None:
        random, names = self._random, sorted(self.world.disks)
        one = [name for name in names if random.random() < 0.5]
        self.world.separate(one)

    def _isolate(self) -> None:
        """The leader, mostly, is alone."""
        self.world.separate([self.world.leader or self._somebody()])

    def _one_way(self) -> None:
        world, random = self.world, self._random
        for name in world.disks:
            for other in world.disks:
                if name != other and random.random() < 0.3:
                    world.block(name, other)

    def _heal(self) -> None:
        self.world.heal_network()

    def _weather(self) -> None:
        random = self._random
        self.world.network.faults = Faults(
            delay_max_s=random.choice((0.004, 0.02, 0.15)),
            loss=random.choice((0.0, 0.05, 0.3)),
            duplication=random.choice((0.0, 0.1)),
            reorder=random.choice((0.0, 0.3)),
        )

    def _lag(self) -> None:
        """All that one of them sends is slow."""
        name = self._somebody()
        lag_s = self._random.choice((0.05, 0.3, 1.0))
        for other in self.world.disks:
            self.world.network.delayed_s[name, other] = lag_s

    def _amnesia(self) -> None:
        """A leader loses what one follower alone has; that one's answer comes in a later term."""
        world, name = self.world, self.world.leader
        others = [other for other in world.disks if other != name]
        if not name or len(others) < 2:
            return
        follower, *rest = self._random.sample(others, len(others))
        ways, disk = world.network.delayed_s, world.disks[name]
        ways[follower, name] = self._random.uniform(0.5, 1.2)
        disk.slow_s = 2.0
        for other in rest:
            world.block(name, other)

        def forget() -> None:
            if world.is_healed:
                return  # a way that is cut now is another one's, who is to be done without
            disk.slow_s = 0.0
            world.crash(name)
            world.start(name)
            for other in rest:
                world.network.blocked.discard((name, other))

        world.after(self._random.uniform(0.05, 0.25), forget)

    def _slow_disk(self) -> None:
        disk = self.world.disks[self._somebody()]
        disk.slow_s = self._random.choice((0.0, 0.02, 0.1, 0.8))

    def _full_disk(self) -> None:
        world, name = self.world, self._somebody()
        world.set_full(name, is_full=True)
        world.after(self._random.uniform(0.1, 1.0), lambda: world.set_full(name, is_full=False))

    def _failed_sync(self) -> None:
        self.world.disks[self._somebody()].fails_next = True

    def _rot(self) -> None:
        """A record goes bad on a disk of a replica that stays down then, if that can be spared."""
        self.world.rot(self._somebody())

    def _pause(self) -> None:
        world, name = self.world, self._somebody()
        world.pause(name)
        world.after(self._random.uniform(0.05, 1.2), lambda: world.resume(name))

    def _transfer(self) -> None:
        self.world.transfer(self._somebody())

    def _change(self) -> None:
        world, leader = self.world, self.world.leader
        if leader:
            change_members(world, *draw_members(world, world.replicas[leader].group.membership))

    def _promote(self) -> None:
        """A new voter alone knows that it is one, and the leader is lost."""
        lose_promoter(self.world, self._doom)

    def _leave(self) -> None:
        """A leader that leaves alone knows that it does, and is lost for a while."""
        lose_leaver(self.world, self._doom)

    def _oversleep(self) -> None:
        """The leader of a sleeping group is lost, or who follows it while one does not hear it."""
        lose_sleeper(self.world, self._doom)

    def _figure_8(self) -> None:
        """What two of three voters have of an earlier term is overwritten."""
        play_figure_8(self.world)

    def _torn(self) -> None:
        """One crashes while it writes a hard state and entries behind it."""
        tear_write(self.world, self._somebody())

    def _fresh_read(self) -> None:
        """A leader is lost as it answers, and it is read at the next one at once."""
        read_afresh(self.world)

    def _doom(self, *names: str) -> None:
        """The others must do without some that are gone: the next that happens is the end."""
        self._doomed = names

    def _retire(self) -> None:
        retire(self.world)

    def _return(self) -> None:
        """One leaves, gives up everything, and is back with one that has heard nothing of it."""
        leave_and_return(self.world)

    def _wipe(self) -> None:
        """A voter loses what its disk has, and begins again by what the others say."""
        wipe(self.world)

    def _outlast(self) -> None:
        """The same, with a leader that was stopped, and still has answers to hear."""
        outlast_election(self.world)

    def _read(self) -> None:
        for _ in range(3):
            self.world.read(self._random.choice(sorted(self.world.disks)))

    def _somebody(self) -> str:
        world, random = self.world, self._random
        leader = world.leader
        if leader and random.random() < 0.4:
            return leader
        return random.choice(sorted(world.disks))

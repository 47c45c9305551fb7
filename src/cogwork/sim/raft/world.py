"""A group of replicas on a network, with clocks of their own, disks, and clients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.plugin.engine.sequencer import Command, decode
from cogwork.raft.core import Recovered
from cogwork.raft.group import Group
from cogwork.raft.membership import Membership
from cogwork.raft.snapshot import Snapshot
from cogwork.sim.clock import Clock
from cogwork.sim.raft.clients import WAY_MAX_S, WAY_MIN_S
from cogwork.sim.raft.disk import Damaged, Disk
from cogwork.sim.raft.hosted import HostedGroup
from cogwork.sim.raft.invariant_checker import Broken, InvariantChecker
from cogwork.sim.raft.network import Network
from cogwork.sim.raft.replica import Replica
from cogwork.sim.raft.shadow import quorums_of
from cogwork.sim.raft.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from cogwork.plugin.engine.contract import Appended
    from cogwork.raft.messages import Message
    from cogwork.raft.pace import Pace
    from cogwork.sim.raft.clients import Client, Request
    from cogwork.sim.raft.limits import Limits

__all__ = ("World",)

RATE_MIN, RATE_MAX = 0.9, 1.1
"""How fast a replica's clock goes."""

AHEAD_MAX_S = 1000.0

TICK_S = 1e-6
"""Time goes on by so much, at least, before a replica wakes itself again."""

ENTRY_BYTES_MAX = 500
"""No entry counts more: one is always in memory."""

STEPS_MAX = 30_000
"""A scenario has a few hundred."""


class World:
    """Everything that a seed decides.

    Attributes:
        random: All chance comes from here.
        clock: The true time.
        network: The ways between replicas.
        disks: By replica, of all that ever were.
        replicas: Those that run, or are paused.
        clients: Who appends.
        checker: The invariant checker.
        lost: Replicas whose disk cannot be read any more.
        excused: Replicas that the others must do without.
        floors: Of those that have left and given up everything, or have lost it.
        wiped: Those whose disk is an empty one, and that have not begun again.
        limits: How small it is.
        first_membership: Whom the group begins with.
        is_hosted: Whether replicas run on a `RaftHost`.
        sync_s: Each synchronisation of a disk takes so much longer, where nothing disturbs.
        is_healed: Whether what disturbs has come to its end.
        steps: How many things have happened.
        tell: Takes the lines of a trace.
    """

    def __init__(
        self,
        random: Random,
        size: int,
        limits: Limits,
        *,
        is_hosted: bool = False,
        sync_s: float = 0.0,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        """Make one of some replicas.

        Args:
            random: All chance comes from here.
            size: How many replicas there are at first.
            limits: How small it is.
            is_hosted: Whether replicas run on a `RaftHost`.
            sync_s: Each synchronisation of a disk takes so much longer.
            tell: Takes the lines of a trace.
        """
        self.random = random
        self.tell = tell
        self.clock = Clock()
        self.limits = limits
        self.is_hosted = is_hosted
        self.sync_s = sync_s
        self.network = Network(self.clock, random, self._deliver)
        self.disks: dict[str, Disk] = {}
        self.replicas: dict[str, Replica] = {}
        self.clients: list[Client] = []
        self.lost: set[str] = set()
        self.excused: set[str] = set()
        self.floors: dict[str, tuple[int, int]] = {}
        self.wiped: set[str] = set()
        self.is_healed = False
        self.steps = 0
        self._lives = 0
        self._rates: dict[str, tuple[float, float]] = {}
        self._commands: dict[bytes, Command] = {}
        self._reading: dict[str, bool] = {}
        names = [f"n{number}" for number in range(1, size + 1)]
        learners = names[size - 1 :] if size > 3 and random.random() < 0.3 else []
        voters = [name for name in names if name not in learners]
        self.first_membership = Membership(tuple(voters), tuple(learners))
        self.checker = InvariantChecker(quorums_of(self.first_membership))
        for name in names:
            self.add(name)

    # Time.

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.run_until(self.clock.now_s + seconds)

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Have something done later."""
        self.clock.at(self.clock.now_s + seconds, action)

    def local_s(self, name: str) -> float:
        """Return a replica's own time."""
        rate, ahead_s = self._rates[name]
        return self.clock.now_s * rate + ahead_s

    def _count(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise self.broken(f"{STEPS_MAX} steps and no end")

    def wake(self, replica: Replica, wake_s: float) -> None:
        """Have a replica ticked at its own time."""
        rate, ahead_s = self._rates[replica.name]

        def tick() -> None:
            if self.replicas.get(replica.name) is replica:
                self._count()
                replica.tick(wake_s)

        self.clock.at(max((wake_s - ahead_s) / rate, self.clock.now_s + TICK_S), tick)

    def note(self, who: str, what: str) -> None:
        """Tell what happens, where somebody listens."""
        if self.tell is None:
            return
        replica, state = self.replicas.get(who), ""
        if replica is not None and hasattr(replica, "group"):
            group = replica.group
            state = (
                f" {group.role.value}:{group.term} {group.commit}/{group.durable_index}"
                f"/{group.last_index}"
            )
        self.tell(f"{self.clock.now_s:9.5f} {who:>4}{state} {what}")

    def broken(self, what: str) -> Broken:
        """Return a failure."""
        return Broken(f"at {self.clock.now_s:.3f} s: {what}")

    # Replicas.

    @property
    def running(self) -> list[str]:
        """Those that run, or are paused."""
        return sorted(self.replicas)

    @property
    def stopped(self) -> list[str]:
        """Those that do not, and can."""
        return sorted(set(self.disks) - set(self.replicas) - self.lost)

    @property
    def leader(self) -> str:
        """Who leads in the highest term, of those that are not excused."""
        leading = [
            each
            for each in self.replicas.values()
            if each.group.leadership is not None and each.name not in self.excused
        ]
        return max(leading, key=lambda each: each.group.term).name if leading else ""

    def some_replica(self) -> str:
        """Return anyone."""
        return self.random.choice(list(self.disks))

    def add(self, name: str) -> None:
        """Add a replica with an empty disk, and start it."""
        disk = self.disks[name] = Disk(self.clock, self.random, Store(self.limits.kept))
        disk.slow_s = self.sync_s
        ahead_s = self.random.uniform(0, AHEAD_MAX_S)
        self._rates[name] = (self.random.uniform(RATE_MIN, RATE_MAX), ahead_s)
        self.checker.on_new(name, disk.store)
        self.start(name)

    def make_group(self, name: str, store: Store, pace: Pace, now_s: float) -> Group | HostedGroup:
        """Make the core of a replica from what its disk holds."""
        snapshot = store.newest
        if snapshot is None:
            is_first = name in self.first_membership.everyone and name not in self.floors
            snapshot = Snapshot(membership=self.first_membership) if is_first else Snapshot()
        recovered = Recovered(
            hard_state=store.hard_state,
            snapshot=snapshot,
            entries=store.entries(snapshot.index + 1, 1 << 62),
            storage=store,
            floor=self.floors.get(name, (0, 0)),
        )
        settings = self.limits.settings
        if self.is_hosted:
            self._lives += 1
            return HostedGroup(
                name, self._lives, recovered, self.random, now_s, settings=settings, pace=pace
            )
        return Group(name, recovered, self.random, now_s, settings=settings, pace=pace)

    def start(self, name: str) -> None:
        """Start a replica that does not run."""
        if name in self.replicas or name not in self.disks or name in self.lost | self.excused:
            return
        self.note(name, "starts")
        try:
            self.replicas[name] = Replica(self, name, self.disks[name])
        except Damaged as damaged:
            self.note(name, f"is lost: {damaged}")
            self.lost.add(name)

    def crash(self, name: str) -> None:
        """End a replica's life."""
        replica = self.replicas.pop(name, None)
        if replica is not None:
            self.note(name, "crashes")
            self.disks[name].crash()
            replica.end()
            if self.is_hosted and self.random.random() < 0.5:
                for other in list(self.replicas.values()):
                    other.lose(name)

    def pause(self, name: str) -> None:
        """Have a replica do nothing; what comes waits."""
        replica = self.replicas.get(name)
        if replica is not None and replica.waiting is None:
            self.note(name, "is paused")
            replica.waiting = []

    def resume(self, name: str) -> None:
        """End a pause."""
        replica = self.replicas.get(name)
        if replica is None or replica.waiting is None:
            return
        self.note(name, "goes on")
        parts = [replica.waiting, replica.asked]
        replica.waiting, replica.asked = None, []
        self.random.shuffle(parts)  # whose sockets are looked at first, nobody knows
        for action in [*parts[0], *parts[1]]:
            if self.replicas.get(name) is replica:
                action()

    def set_full(self, name: str, *, is_full: bool) -> None:
        """Fill a disk, or makes room."""
        if name not in self.disks:
            return
        self.note(name, "has a full disk" if is_full else "has room on its disk")
        self.disks[name].is_full = is_full
        replica = self.replicas.get(name)
        if replica is not None and not is_full:
            replica.room()

    def rot(self, name: str) -> None:
        """Damage a disk for ever, where a majority of any membership does without it."""
        if self.lost or not self.can_lose(name) or not self.disks[name].rot():
            return
        self.crash(name)
        self.start(name)

    def can_lose(self, *names: str) -> bool:
        """Return whether no membership that is in any log, or is just being made, needs them."""
        leading = [each.group.leadership for each in self.replicas.values()]
        if any(each is not None and each.changes.is_under_way for each in leading):
            return False
        return all(
            len(half) > 2 * sum(name in half for name in names)
            for shadow in self.checker.shadows.values()
            for _, quorums in shadow.log.quorums
            for half in quorums
        )

    def transfer(self, to: str) -> None:
        """Ask the leader to hand over."""
        leader = self.leader
        if leader:
            self.note(leader, f"is asked to hand over to {to}")
            self.replicas[leader].transfer(to)

    # Ways.

    def separate(self, one: Iterable[str]) -> None:
        """Cut some replicas off from the others."""
        side = set(one)
        self.note("", f"{sorted(side)} are cut off")
        self.network.separate(sorted(side), sorted(set(self.disks) - side))

    def block(self, sender: str, receiver: str) -> None:
        """Cut one way."""
        self.note("", f"nothing goes from {sender} to {receiver}")
        self.network.blocked.add((sender, receiver))

    def heal_network(self) -> None:
        """Mend all ways."""
        self.note("", "the network is well")
        self.network.heal()

    def _deliver(self, sender: str, receiver: str, message: Message) -> None:
        replica = self.replicas.get(receiver)
        if replica is not None:
            self._count()
            if self.tell is not None:
                self.note(receiver, f"<- {sender} {replica.shown(message)}")
            replica.step(sender, message)

    # Clients.

    def decode(self, payload: bytes) -> Command:
        """Decode a command, once for all replicas."""
        command = self._commands.get(payload)
        if command is None:
            command = self._commands[payload] = decode(payload)
        return command

    def take(self, name: str, request: Request) -> None:
        """A request reaches a replica, if that runs."""
        self._count()
        replica = self.replicas.get(name)
        if replica is None:
            self.refuse(request, None)
        else:
            if self.tell is not None:
                batch = request.batch
                self.note(
                    name, f"<- {request.client.name} appends {batch.sequence} {batch.payload!r}"
                )
            replica.take(request)

    def answer(self, request: Request, answer: Appended) -> None:
        """Send an answer; it may be lost."""
        if self.random.random() >= self.network.faults.loss:
            self.after(self._way_s(), lambda: self._answered(request, answer))

    def refuse(self, request: Request, hint: str | None) -> None:
        """Send a refusal."""
        replica = request.replica
        self.after(self._way_s(), lambda: request.client.on_refusal(request, hint, replica))

    def read(self, name: str, done: Callable[[int | None], object] | None = None) -> None:
        """A client reads at a replica what is current."""
        replica, floor = self.replicas.get(name), self.checker.next_offset
        if replica is None:
            return

        def take(next_offset: int | None) -> None:
            if next_offset is not None:
                self.note(name, f"reads {next_offset}")
                self.checker.on_read(name, floor, next_offset)
            if done is not None:
                done(next_offset)

        replica.read(take)

    def _answered(self, request: Request, answer: Appended) -> None:
        self.steps += 1
        if self.tell is not None:
            self.note(request.client.name, f"is answered {answer}")
        request.client.on_answer(request, answer)

    def _way_s(self) -> float:
        return WAY_MIN_S + (WAY_MAX_S - WAY_MIN_S) * self.random.random()

    # The end.

    def heal(self) -> None:
        """End everything that disturbs."""
        self.note("", "all is well from now on")
        self.is_healed = True
        self.network.heal()
        self.excused.clear()
        self._reading.clear()
        for name, disk in self.disks.items():
            disk.slow_s, disk.fails_next = self.sync_s, False
            if disk.is_full:
                self.set_full(name, is_full=False)
        for name in self.running:
            self.resume(name)
        for name in self.stopped:
            self.start(name)

    def is_converged(self) -> bool:
        """Return whether all is as it must be in peace."""
        return not self.why()

    def why(self) -> str:
        """Return what is not as it must be in peace."""
        leader = self.leader
        if not leader:
            return "nobody leads"
        group = self.replicas[leader].group
        membership = group.membership
        if membership.is_joint:
            return f"{leader} is in a joint membership"
        last = group.last_index
        members = sorted(membership.everyone - self.lost - self.excused)
        for name in members:
            replica = self.replicas.get(name)
            if replica is None:
                return f"{name} does not run"
            if replica.applied != last:
                return f"{name} has applied {replica.applied} of {last} entries of {leader}"
        for client in self.clients:
            if not client.is_done:
                return f"{client.name} waits for {len(client.waiting)}, has {client.left} to do"
        return self._why_not_read(members)

    def _why_not_read(self, members: list[str]) -> str:
        """Read at each member once all have converged."""
        for name in members:
            if name not in self._reading:
                self._reading[name] = False
                self.read(name, partial(self._has_read, name))
        late = [name for name in members if not self._reading.get(name)]
        return f"{late} have not answered a read" if late else ""

    def _has_read(self, name: str, next_offset: int | None) -> None:
        if next_offset is not None:
            self._reading[name] = True
        else:
            self._reading.pop(name, None)

    def check_end(self) -> None:
        """Check what must hold when everything has come to an end.

        Raises:
            Broken: It does not.
        """
        membership = self.replicas[self.leader].group.membership
        states = {
            name: self.replicas[name].machine.to_bytes()
            for name in sorted(membership.everyone - self.lost)
        }
        if len(set(states.values())) != 1:
            raise self.broken(f"the states differ: {states}")
        settings = self.limits.settings
        for name in states:
            room_bytes = settings.tail_bytes
            if name != self.leader:  # which may keep what somebody has just taken
                room_bytes = min(room_bytes, settings.spare_bytes)
            tail_bytes = self.replicas[name].group.tail_bytes
            if tail_bytes > room_bytes + ENTRY_BYTES_MAX:
                raise self.broken(f"{name} keeps {tail_bytes} octets of entries in memory")

"""Containers with Raft hosts on a network in hand, for tests of what hosts do together."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import ConsensusError
from cogwork.raft.core import Recovered
from cogwork.raft.entries import Kind
from cogwork.raft.host import RaftHost
from cogwork.raft.membership import Membership
from cogwork.raft.ready import HardState
from cogwork.raft.settings import Settings
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.raft.entries import Entry
    from cogwork.raft.group import Group
    from cogwork.raft.host import HostReady
    from cogwork.raft.ready import Event, Write

STEP_S = 0.01


class Planned(Exception):
    """What a test has a group raise: that one is closed."""


class Kept:
    """What one container has on disk of one group."""

    def __init__(self, membership: Membership) -> None:
        self.hard_state = HardState()
        self.snapshot = Snapshot(membership=membership)
        self.entries: list[Entry] = []

    def write(self, write: Write) -> None:
        self.hard_state = write.hard_state or self.hard_state
        if write.entries:
            first = write.entries[0].index
            self.entries = [each for each in self.entries if each.index < first]
            self.entries += write.entries


class Lab:
    """Containers a, b, c … with groups; disks are quick, frames take a turn."""

    def __init__(
        self, names: Iterable[str], settings: Settings | None = None, *, seed: int = 0
    ) -> None:
        self.now_s = 0.0
        self.random = Random(seed)
        self.settings = settings or Settings(quiesce_s=1.0, priority_hold_s=1e9)
        self.hosts: dict[str, RaftHost] = {}
        self.kept: dict[str, dict[int, Kept]] = defaultdict(dict)
        self.down: set[str] = set()
        self.stopped: set[str] = set()
        self.cuts: set[frozenset[str]] = set()
        self.frames: list[tuple[str, str, bytes]] = []
        self.sent: list[tuple[str, str, bytes]] = []
        self.applied: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.events: list[tuple[str, int, Event]] = []
        self.faults: list[tuple[str, int]] = []
        self.reports: list[str] = []
        self.strangers: set[tuple[str, int]] = set()
        self.loss = 0.0
        self._incarnation = 0
        for name in names:
            self.start(name)

    def start(self, name: str) -> None:
        self._incarnation += 1
        self.down.discard(name)
        host = RaftHost(name, self._incarnation, self.random, self.now_s, self.settings)
        self.hosts[name] = host
        for number, kept in self.kept[name].items():
            self.applied[name, number] = []
            recovered = Recovered(
                hard_state=kept.hard_state, snapshot=kept.snapshot, entries=list(kept.entries)
            )
            host.open(number, recovered, self.now_s)

    def crash(self, name: str) -> None:
        self.down.add(name)

    def open(self, number: int, voters: str, learners: str = "") -> None:
        membership = Membership(tuple(voters), tuple(learners))
        for name in (*voters, *learners):
            self.kept[name][number] = Kept(membership)
            recovered = Recovered(snapshot=self.kept[name][number].snapshot)
            self.hosts[name].open(number, recovered, self.now_s)

    def join(self, number: int, name: str) -> None:
        self.kept[name][number] = Kept(Membership())
        self.hosts[name].open(number, Recovered(), self.now_s)

    def live(self) -> list[str]:
        return [name for name in self.hosts if name not in self.down | self.stopped]

    def run(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += STEP_S
            for name in self.live():
                if self.hosts[name].wake_s <= self.now_s:
                    self.hosts[name].tick(self.now_s)
            self.turn()

    def turn(self) -> None:
        frames, self.frames = self.frames, []
        for sender, to, data in frames:
            if to in self.live() and frozenset((sender, to)) not in self.cuts:
                self.hosts[to].receive(sender, data, self.now_s)
            elif to in self.stopped:
                self.frames.append((sender, to, data))
        for name in self.live():
            self._turn_of(name)

    def _turn_of(self, name: str) -> None:
        host = self.hosts[name]
        while ready := host.ready():
            self._close_faulty(name, ready)
            for number, each in ready.groups:
                if each.write is not None:
                    self.kept[name][number].write(each.write)
                for entry in each.committed:
                    if entry.kind == Kind.COMMAND:
                        self.applied[name, number].append(entry.payload)
                self.events.extend((name, number, event) for event in each.events)
            if ready.number:
                host.persisted(ready.number, self.now_s)
            self.reports += ready.reports
            self.strangers |= ready.strangers
            for to, parts in ready.frames:
                data = b"".join(parts)
                self.sent.append((name, to, data))
                if self.random.random() >= self.loss:
                    self.frames.append((name, to, data))

    def _close_faulty(self, name: str, ready: HostReady) -> None:
        for number, fault in ready.faults:
            if not isinstance(fault, Planned):
                raise fault
            self.hosts[name].close(number)
            del self.kept[name][number]
            self.faults.append((name, number))

    def group(self, name: str, number: int) -> Group:
        return self.hosts[name].group(number)

    def leader(self, number: int) -> str:
        """Return who leads, the latest where several believe it."""
        leaders = [
            (self.group(name, number).term, name)
            for name in self.live()
            if number in self.kept[name] and self.group(name, number).leadership is not None
        ]
        return max(leaders)[1]

    def propose(self, number: int, payload: bytes) -> bool:
        try:
            self.hosts[self.leader(number)].propose(number, payload, self.now_s)
        except (ConsensusError, ValueError):
            return False
        return True

    def asleep(self, number: int) -> str:
        """Return the members that are asleep."""
        names = [name for name in self.live() if number in self.kept[name]]
        return "".join(name for name in names if self.group(name, number).is_quiescent)

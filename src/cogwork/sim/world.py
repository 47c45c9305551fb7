"""Containers on a network: they dial, crash, restart with a new incarnation, subscribe."""

from __future__ import annotations

from random import Random
from time import process_time
from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import Timers
from cogwork.router.mesh.effects import Close, Effect, InterestChanged, Reason, Report, Send
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.own import Own
from cogwork.sim.clock import Clock
from cogwork.sim.network import Network, Wire

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Host", "World")

REDIAL_S = 0.2
"""Between two attempts to connect."""


class Host:
    """One container of the world, alive or not.

    Attributes:
        name: Its id.
        mesh: Its view of the mesh; None while it is dead.
        wires: Its connections by link number.
        dials: Whom it dials, with costs; the same container may stand there more than once.
        reports: What it reported, of all its lives.
        closed: Why links were closed, here or by the other end.
        patterns: Who has which patterns, as its effects told: what a container would route by.
        cpu_s: What its mesh has taken.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.mesh: Mesh | None = None
        self.wires: dict[int, tuple[Wire, int]] = {}
        self.dials: list[tuple[str, int]] = []
        self.reports: list[Report] = []
        self.closed: list[Reason] = []
        self.patterns: dict[str, dict[int, str]] = {}
        self.cpu_s = 0.0
        self.wake_s = -1.0
        self.link = 0
        self.incarnation = 0
        self.dialled: dict[int, int] = {}


class World:
    """Everything that a seed decides.

    Attributes:
        seed: The seed.
        random: All chance comes from here.
        clock: The time.
        network: The connections.
        hosts: The containers by name.
    """

    def __init__(self, seed: int, timers: Timers | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.clock = Clock()
        self.network = Network(self.clock, self.random)
        self.hosts: dict[str, Host] = {}
        self.timers = timers or Timers()

    @property
    def alive(self) -> dict[str, Mesh]:
        """The containers that run."""
        return {name: host.mesh for name, host in self.hosts.items() if host.mesh is not None}

    def add(self, *names: str) -> None:
        """Adds containers, and starts them."""
        for name in names:
            self.hosts[name] = Host(name)
            self.start(name)

    def join(self, edges: Iterable[tuple[str, str]], cost: int = 0) -> None:
        """Has the first of each pair dial the second, now and whenever the connection is gone."""
        for one, other in edges:
            host = self.hosts[one]
            host.dials.append((other, cost))
            self._dial(host, len(host.dials) - 1)

    def part(self, one: str, other: str) -> None:
        """Removes the links between two containers, and closes their connections."""
        for name, peer in ((one, other), (other, one)):
            host = self.hosts[name]
            for slot, (target, _) in enumerate(host.dials):
                if target == peer:
                    host.dials[slot] = ("", 0)
            for link, (wire, side) in list(host.wires.items()):
                if wire.ends[1 - side] == peer:
                    self._shut(host, link, None)

    def start(self, name: str) -> None:
        """Starts a container, in a new life."""
        host = self.hosts[name]
        host.incarnation = max(host.incarnation + 1, int(self.clock.now_s * 1000) + 1)
        own = Own(id=name, incarnation=host.incarnation, timers=self.timers)
        host.mesh = Mesh(own, self.clock.now_s)
        host.patterns = {}
        host.wires, host.dialled = {}, {}
        self.act(host, host.mesh.start(self.clock.now_s))
        for slot in range(len(host.dials)):
            self._dial(host, slot)

    def crash(self, name: str) -> None:
        """Kills a container: its connections break."""
        host = self.hosts[name]
        for link in list(host.wires):
            self._shut(host, link, None)
        host.mesh = None

    def subscribe(self, name: str, pattern: str) -> None:
        """Has a client subscribe to a pattern."""
        host = self.hosts[name]
        assert host.mesh is not None
        self.act(host, host.mesh.subscribe("", pattern, self.clock.now_s))

    def unsubscribe(self, name: str, pattern: str) -> None:
        """Has a client give one subscription up."""
        host = self.hosts[name]
        assert host.mesh is not None
        self.act(host, host.mesh.unsubscribe("", pattern, self.clock.now_s))

    def cut(self, name: str, link: int) -> None:
        """Breaks a connection."""
        self._shut(self.hosts[name], link, None)

    def set_cost(self, name: str, link: int, cost: int) -> None:
        """Configures the cost of a link."""
        host = self.hosts[name]
        assert host.mesh is not None
        self.act(host, host.mesh.set_cost(link, cost, self.clock.now_s))

    def run(self, seconds: float) -> None:
        """Lets time pass."""
        self.clock.run_until(self.clock.now_s + seconds)

    def inject(self, name: str, link: int, data: bytes) -> None:
        """Has bytes arrive on a link as if its other end had sent them."""
        host = self.hosts[name]
        if host.mesh is not None:
            self.act(host, host.mesh.on_message(link, data, self.clock.now_s))

    def act(self, host: Host, effects: list[Effect]) -> None:
        """Does what a container's mesh wants done."""
        for effect in effects:
            if isinstance(effect, Send):
                self._send(host, effect)
            elif isinstance(effect, Close):
                self._shut(host, effect.link, effect.reason)
            elif isinstance(effect, Report):
                host.reports.append(effect)
            elif isinstance(effect, InterestChanged):
                entries = host.patterns.setdefault(effect.origin, {})
                for label in effect.removed:
                    entries.pop(label, None)
                entries.update((label, each.address) for label, each in effect.added.items())
        self._schedule(host)

    def _send(self, host: Host, effect: Send) -> None:
        found = host.wires.get(effect.link)
        if found is None:
            return
        wire, side = found
        receiver = self.hosts[wire.ends[1 - side]]
        self.network.send(wire, side, effect.data, lambda data: self._receive(receiver, wire, data))

    def _receive(self, host: Host, wire: Wire, data: bytes) -> None:
        for link, (known, _) in host.wires.items():
            if known is wire and host.mesh is not None:
                began_s = process_time()
                effects = host.mesh.on_message(link, data, self.clock.now_s)
                host.cpu_s += process_time() - began_s
                self.act(host, effects)
                return

    def _schedule(self, host: Host) -> None:
        mesh = host.mesh
        if mesh is None:
            return
        wake_s = max(mesh.wake_s, self.clock.now_s)
        if self.clock.now_s < host.wake_s <= wake_s or wake_s == float("inf"):
            return
        host.wake_s = wake_s

        def tick() -> None:
            if host.mesh is mesh and host.wake_s == wake_s:
                host.wake_s = -1.0
                began_s = process_time()
                effects = mesh.tick(self.clock.now_s)
                host.cpu_s += process_time() - began_s
                self.act(host, effects)

        self.clock.at(wake_s, tick)

    def _dial(self, host: Host, slot: int) -> None:
        """Connects to whom a slot names; tries again while that is not possible."""
        target, cost = host.dials[slot]
        if host.mesh is None or slot in host.dialled or not target:
            return
        other = self.hosts[target]
        is_needed = target not in host.mesh.neighbours.active or target == host.name
        if other.mesh is None or self.network.is_separated(host.name, target) or not is_needed:
            self._redial(host, slot)
            return
        wire = self.network.connect(host.name, target)
        host.dialled[slot] = self._attach(host, wire, 0, cost)
        self._attach(other, wire, 1, 0)

    def _attach(self, host: Host, wire: Wire, side: int, cost: int) -> int:
        host.link += 1
        link = host.link
        host.wires[link] = (wire, side)
        assert host.mesh is not None
        now_s = self.clock.now_s
        effects = host.mesh.on_connected(link, now_s, is_dialled=side == 0, cost=cost)
        # The other end is attached in the same moment: what is said now must find it.
        self.clock.at(now_s, lambda: self.act(host, effects))
        return link

    def _redial(self, host: Host, slot: int) -> None:
        mesh = host.mesh

        def again() -> None:
            if host.mesh is mesh:
                self._dial(host, slot)

        self.clock.at(self.clock.now_s + REDIAL_S * (1 + self.random.random()), again)

    def _shut(self, host: Host, link: int, reason: Reason | None) -> None:
        """Closes a connection; both ends are told, the other one unless a partition is between."""
        found = host.wires.get(link)
        if found is None:
            return
        wire, side = found
        self._detach(host, link, reason)
        if wire.is_open:
            wire.is_open = False
            other = self.hosts[wire.ends[1 - side]]
            for number, (known, known_side) in list(other.wires.items()):
                if known is wire and known_side != side:
                    self.clock.at(
                        self.clock.now_s + self.network.faults.delay_min_s,
                        lambda number=number: self._detach(other, number, reason),  # type: ignore[misc]
                    )

    def _detach(self, host: Host, link: int, reason: Reason | None) -> None:
        if link not in host.wires:
            return
        del host.wires[link]
        if reason is not None:
            host.closed.append(reason)
        if host.mesh is not None:
            self.act(host, host.mesh.on_closed(link, self.clock.now_s))
        for slot in [slot for slot, number in host.dialled.items() if number == link]:
            del host.dialled[slot]
            self._redial(host, slot)

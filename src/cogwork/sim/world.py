"""Containers on a network: they dial, crash, stop, restart with a new incarnation, subscribe."""

from __future__ import annotations

from math import inf
from random import Random
from typing import TYPE_CHECKING

from cogwork.router.mesh.bounds import Timers
from cogwork.router.mesh.effects import Close, Effect, Reason, Send
from cogwork.sim.clock import Clock
from cogwork.sim.host import Host
from cogwork.sim.network import Network, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.router.mesh.mesh import Mesh
    from cogwork.router.mesh.messages import Interest

__all__ = ("World",)

REDIAL_S = 0.2
"""Between two attempts to connect."""

AHEAD_MAX_S = 1e6
"""Every container counts its time from another moment."""

GOODBYE_S = 0.2
"""Between a container's good-bye and its end."""


class World:
    """Everything that a seed decides.

    Attributes:
        seed: The seed.
        random: All chance comes from here.
        clock: The time.
        network: The connections.
        hosts: The containers by name.
        timers: How long they wait.
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
        """The containers that run, or are stopped."""
        return {name: host.mesh for name, host in self.hosts.items() if host.mesh is not None}

    @property
    def wires(self) -> list[Wire]:
        """The connections that both ends have, each once."""
        return [
            wire
            for host in self.hosts.values()
            for wire, side in host.wires.values()
            if side == 0 and wire.is_open
        ]

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.run_until(self.clock.now_s + seconds)

    # What happens to containers.

    def add(self, *names: str) -> None:
        """Add containers, and start them."""
        for name in names:
            self.hosts[name] = Host(name, self.random.uniform(0, AHEAD_MAX_S))
            self.start(name)

    def start(self, name: str) -> None:
        """Start a container, in a new life."""
        host = self.hosts[name]
        incarnation = max(host.incarnation + 1, int(self.clock.now_s * 1000) + 1)
        host.live(incarnation, self.timers, self._now_s(host))
        self._tell(host, lambda mesh, now_s: mesh.start(now_s))
        for slot in range(len(host.dials)):
            self._dial(host, slot)

    def crash(self, name: str) -> None:
        """Kill a container: its connections break."""
        host = self.hosts[name]
        host.mesh = None
        for link in list(host.wires):
            self._shut(host, link, None)
        host.die_down()

    def leave(self, name: str) -> None:
        """Have a container say good-bye, and end soon."""
        host = self.hosts[name]
        mesh = host.mesh
        self._tell(host, lambda mesh, now_s: mesh.leave(now_s))

        def end() -> None:
            if host.mesh is mesh:
                self.crash(name)

        self.clock.at(self.clock.now_s + GOODBYE_S, end)

    def stop(self, name: str) -> None:
        """Have a container do nothing, as under SIGSTOP; what arrives waits."""
        host = self.hosts[name]
        host.waiting, host.wake_s = [], inf

    def resume(self, name: str) -> None:
        """End a stop."""
        host = self.hosts[name]
        waiting, host.waiting = host.waiting or [], None
        for action in waiting:
            action()
        self._schedule(host)

    # What happens to links.

    def join(self, edges: Iterable[tuple[str, str]], cost: int = 0) -> None:
        """Have the first of each pair dial the second, now and whenever the connection is gone."""
        for one, other in edges:
            host = self.hosts[one]
            host.dials.append((other, cost))
            self._dial(host, len(host.dials) - 1)

    def part(self, one: str, other: str) -> None:
        """Remove the links between two containers, and close their connections."""
        for name, peer in ((one, other), (other, one)):
            host = self.hosts[name]
            for slot, (target, _) in enumerate(host.dials):
                if target == peer:
                    host.dials[slot] = ("", 0)
            for link, (wire, side) in list(host.wires.items()):
                if wire.ends[1 - side] == peer:
                    self._shut(host, link, None)

    def cut(self, name: str, link: int) -> None:
        """Break a connection."""
        self._shut(self.hosts[name], link, None)

    def set_cost(self, name: str, link: int, cost: int) -> None:
        """Configure the cost of a link."""
        host = self.hosts[name]
        wire, side = host.wires[link]
        wire.costs[side] = cost
        self._tell(host, lambda mesh, now_s: mesh.set_cost(link, cost, now_s))

    # What clients do.

    def subscribe(self, name: str, pattern: str) -> None:
        """Have a client subscribe to a pattern."""
        host = self.hosts[name]
        host.subscriptions[pattern] += 1
        self._tell(host, lambda mesh, now_s: mesh.subscribe("", pattern, now_s))

    def unsubscribe(self, name: str, pattern: str) -> None:
        """Have a client give one subscription up."""
        host = self.hosts[name]
        host.subscriptions[pattern] -= 1
        self._tell(host, lambda mesh, now_s: mesh.unsubscribe("", pattern, now_s))

    def set_interest(self, name: str, interest: Interest) -> None:
        """Set the figures of a queue or an anycast address."""
        host = self.hosts[name]
        if any(interest[3:]):
            host.figures[interest.key] = interest
        else:
            host.figures.pop(interest.key, None)
        self._tell(host, lambda mesh, now_s: mesh.set_interest(interest, now_s))

    # How it works.

    def _now_s(self, host: Host) -> float:
        return self.clock.now_s + host.ahead_s

    def _tell(self, host: Host, event: Callable[[Mesh, float], list[Effect]]) -> None:
        """Tell a container's mesh of an event, once it runs, and do what follows."""
        if host.waiting is not None:
            host.waiting.append(lambda: self._tell(host, event))
            return
        now_s = self._now_s(host)
        self._act(host, host.ask(lambda mesh: event(mesh, now_s)))

    def _act(self, host: Host, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._send(host, effect)
            elif isinstance(effect, Close):
                self._shut(host, effect.link, effect.reason)
            else:
                host.note(effect)
        self._schedule(host)

    def _send(self, host: Host, effect: Send) -> None:
        found = host.wires.get(effect.link)
        if found is None:
            return
        wire, side = found
        receiver = self.hosts[wire.ends[1 - side]]

        def deliver(data: bytes) -> None:
            link = wire.links[1 - side]
            self._tell(receiver, lambda mesh, now_s: mesh.on_message(link, data, now_s))

        self.network.send(wire, side, effect.data, deliver)

    def _schedule(self, host: Host) -> None:
        mesh = host.mesh
        if mesh is None or host.waiting is not None:
            return
        wake_s = mesh.wake_s
        if wake_s == inf or host.wake_s <= wake_s:
            return
        host.wake_s = wake_s

        def tick() -> None:
            if host.mesh is mesh and host.wake_s == wake_s:
                host.wake_s = inf
                # No earlier than planned, whatever the sum of the two clocks is rounded to.
                now_s = max(self._now_s(host), wake_s)
                self._act(host, host.ask(lambda mesh: mesh.tick(now_s)))

        self.clock.at(wake_s - host.ahead_s, tick)

    def _dial(self, host: Host, slot: int) -> None:
        """Connect to whom a slot names; try again while that is not possible."""
        target, cost = host.dials[slot]
        if host.mesh is None or slot in host.dialled or not target:
            return
        other = self.hosts[target]
        is_needed = target not in host.links
        is_possible = other.mesh is not None and other.waiting is None and host.waiting is None
        if not is_possible or not is_needed or self.network.is_separated(host.name, target):
            self._redial(host, slot)
            return
        wire = Wire(host.name, target)
        wire.costs[0] = cost
        wire.links = [host.new_link(), other.new_link()]
        host.dialled[slot] = wire.links[0]
        for side, end in enumerate((host, other)):
            end.wires[wire.links[side]] = (wire, side)
        self._connect(host, wire.links[0], cost, is_dialled=True)
        self._connect(other, wire.links[1], 0, is_dialled=False)

    def _connect(self, host: Host, link: int, cost: int, *, is_dialled: bool) -> None:
        self._tell(
            host,
            lambda mesh, now_s: mesh.on_connected(link, now_s, is_dialled=is_dialled, cost=cost),
        )

    def _redial(self, host: Host, slot: int) -> None:
        mesh = host.mesh

        def again() -> None:
            if host.mesh is mesh:
                self._dial(host, slot)

        self.clock.at(self.clock.now_s + REDIAL_S * (1 + self.random.random()), again)

    def _shut(self, host: Host, link: int, reason: Reason | None) -> None:
        """Close a connection; the other end is told, unless a partition is between."""
        found = host.wires.get(link)
        if found is None:
            return
        wire, side = found
        self._detach(host, link, reason)
        other = self.hosts[wire.ends[1 - side]]
        number = wire.links[1 - side]
        if number and not self.network.is_separated(*wire.ends):
            arrives_s = self.clock.now_s + self.network.faults.delay_min_s
            self.clock.at(arrives_s, lambda: self._detach(other, number, reason))

    def _detach(self, host: Host, link: int, reason: Reason | None) -> None:
        found = host.wires.pop(link, None)
        if found is None:
            return
        wire, side = found
        wire.links[side] = 0
        if reason is not None:
            host.closed.append(reason)
        self._tell(host, lambda mesh, now_s: mesh.on_closed(link, now_s))
        for slot in [slot for slot, number in host.dialled.items() if number == link]:
            del host.dialled[slot]
            self._redial(host, slot)

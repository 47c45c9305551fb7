"""Containers' views of the mesh, wired to each other by hand: no socket, no clock, no chance.

`Lab` holds some meshes and the connections between them. What they send waits in `Lab.wires` until
`deliver` hands it over; `run` lets time pass in small steps and delivers everything. A `Stranger`
is an end that says what a test wants, through the encoder alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from cogwork.router.mesh.effects import Close, Effect, Report, Send
from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import Hello
from cogwork.router.mesh.own import Own
from cogwork.router.mesh.wire import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.router.mesh.bounds import Timers
    from cogwork.router.mesh.messages import InterestKey, Message

    Event = Callable[..., list[Effect]]

T = TypeVar("T")

STEP_S = 0.01


@dataclass(eq=False)
class Station:
    """A container: its mesh, and all that came out of it."""

    name: str
    mesh: Mesh
    ahead_s: float = 0.0
    links: int = 0
    effects: list[Effect] = field(default_factory=list)

    def of(self, kind: type[T]) -> list[T]:
        return [each for each in self.effects if isinstance(each, kind)]

    @property
    def said(self) -> list[str]:
        return [report.text for report in self.of(Report)]

    @property
    def active(self) -> dict[str, int]:
        return {peer: link.number for peer, link in self.mesh.neighbours.active.items()}


@dataclass(eq=False)
class Wire:
    """A connection; `ends` are station and link number, the dialler's first."""

    ends: list[tuple[Station, int]]
    waiting: tuple[deque[bytes], deque[bytes]] = field(default_factory=lambda: (deque(), deque()))
    is_silent: bool = False
    lost: tuple[type, ...] = ()


class Lab:
    """Some containers on one table."""

    def __init__(self, *names: str, timers: Timers | None = None) -> None:
        self.now_s = 1000.0
        self.stations: dict[str, Station] = {}
        self.wires: list[Wire] = []
        self.strangers: list[Stranger] = []
        self.timers = timers
        for name in names:
            self.start(name)

    def __getitem__(self, name: str) -> Mesh:
        return self.stations[name].mesh

    def interested(self, name: str, key: InterestKey) -> set[str]:
        """Return who wants exactly this, by what a container knows."""
        origins = self[name].interests.table.origins
        return {each for each, table in origins.items() if key in table.labels}

    def start(self, name: str, incarnation: int = 1, as_name: str = "", **changes: Any) -> None:
        """Add a container; `as_name` where its id is another one than its place on the table."""
        own = Own(id=as_name or name, incarnation=incarnation, **changes)
        if self.timers is not None:
            own.timers = self.timers
        station = self.stations[name] = Station(name, Mesh(own, self.now_s))
        self.act(station, station.mesh.start(self.now_s))

    def link(self, one: str, other: str, cost: int = 0) -> Wire:
        """Have one container dial another."""
        ends = [self._number(one), self._number(other)]
        wire = Wire(ends)
        self.wires.append(wire)
        for side, (station, number) in enumerate(ends):
            now_s = self.now_s + station.ahead_s
            connected = station.mesh.on_connected
            effects = connected(number, now_s, is_dialled=side == 0, cost=0 if side else cost)
            self.act(station, effects)
        return wire

    def cut(self, wire: Wire) -> None:
        """Break a connection; both ends are told."""
        self.wires.remove(wire)
        for station, number in wire.ends:
            self.do_at(station, Mesh.on_closed, number)

    def kill(self, name: str) -> None:
        """Have a container die: its connections break."""
        station = self.stations.pop(name)
        for wire in [w for w in self.wires if any(end[0] is station for end in w.ends)]:
            self.wires.remove(wire)
            for end, number in wire.ends:
                if end is not station:
                    self.do_at(end, Mesh.on_closed, number)

    def do(self, name: str, event: Event, *args: object, **named: object) -> None:
        """Have something happen to a container, now."""
        self.do_at(self.stations[name], event, *args, **named)

    def do_at(self, station: Station, event: Event, *args: object, **named: object) -> None:
        """The same by station; nothing happens to one that has gone."""
        if self.stations.get(station.name) is not station:
            return
        now_s = self.now_s + station.ahead_s
        self.act(station, event(station.mesh, *args, now_s, **named))

    def act(self, station: Station, effects: list[Effect]) -> None:
        """Do what a container wants done."""
        station.effects += effects
        for effect in effects:
            if isinstance(effect, Send):
                self._send(station, effect)
            elif isinstance(effect, Close):
                for wire in [w for w in self.wires if (station, effect.link) in w.ends]:
                    self.deliver(wire)
                    if wire in self.wires:
                        self.cut(wire)
                for stranger in self.strangers:
                    if (stranger.station, stranger.number) == (station, effect.link):
                        stranger.closed = effect
                        self.do_at(station, Mesh.on_closed, effect.link)

    def deliver(self, wire: Wire) -> bool:
        """Hand over what waits on a connection; tell whether there was anything."""
        was_any = False
        for side, waiting in enumerate(wire.waiting):
            for _ in range(len(waiting)):
                if wire not in self.wires:
                    return True
                self.hand_over(wire, side, waiting.popleft())
                was_any = True
        return was_any

    def hand_over(self, wire: Wire, side: int, data: bytes) -> None:
        """Give one message to one end of a connection."""
        station, number = wire.ends[side]
        self.do_at(station, Mesh.on_message, number, data)

    def run(self, seconds: float, step_s: float = STEP_S) -> None:
        """Let time pass; everything arrives at once."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += step_s
            self.tick()
            for _ in range(1000):
                if not any([self.deliver(wire) for wire in list(self.wires)]):  # noqa: C419  # all
                    break

    def tick(self) -> None:
        """Tick whoever is due."""
        for station in list(self.stations.values()):
            now_s = self.now_s + station.ahead_s
            if now_s >= station.mesh.wake_s:
                self.act(station, station.mesh.tick(now_s))

    def _number(self, name: str) -> tuple[Station, int]:
        station = self.stations[name]
        station.links += 1
        return station, station.links

    def _send(self, station: Station, effect: Send) -> None:
        for wire in self.wires:
            if not wire.is_silent and (station, effect.link) in wire.ends:
                side = wire.ends.index((station, effect.link))
                if wire.lost and isinstance(decode(effect.data), wire.lost):
                    continue
                wire.waiting[1 - side].append(effect.data)
        for stranger in self.strangers:
            if (stranger.station, stranger.number) == (station, effect.link):
                heard = decode(effect.data)
                assert heard is not None
                stranger.heard.append(heard)


class Stranger:
    """The other end of a container's link, played by a test."""

    def __init__(self, lab: Lab, name: str, own_id: str = "z", incarnation: int = 1) -> None:
        self.lab = lab
        self.station, self.number = lab._number(name)
        self.id, self.incarnation = own_id, incarnation
        self.heard: list[Message] = []
        self.closed: Close | None = None
        lab.strangers.append(self)
        lab.do(name, Mesh.on_connected, self.number, is_dialled=False)

    def say(self, message: Message | bytes) -> None:
        data = message if isinstance(message, bytes) else encode(message)
        self.lab.do_at(self.station, Mesh.on_message, self.number, data)

    def hello(self, **changes: Any) -> None:
        """Say hello, as one that hears the container."""
        fields: dict[str, object] = {
            "id": self.id,
            "incarnation": self.incarnation,
            "version": 1,
            "virtual_hosts": ("",),
            "heard": self.station.mesh.own.incarnation,
            "interval_ms": 1000,
            "connection": 1,
        }
        self.say(Hello(**{**fields, **changes}))

    def last(self, kind: type[T]) -> T:
        return next(each for each in reversed(self.heard) if isinstance(each, kind))

    def all(self, kind: type[T]) -> list[T]:
        return [each for each in self.heard if isinstance(each, kind)]

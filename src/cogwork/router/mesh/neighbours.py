"""All neighbours: their links, and the one that is used where there are several.

A neighbour is up while it has a two-way link. Where it has more, both ends keep the one of the
lowest rank (`Link.rank`), and close another only once the better one has proven itself
(`Link.is_proven_after`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cogwork.router.mesh.admission import Refusal, refusal_of
from cogwork.router.mesh.bounds import COST_MAX, NEIGHBOURS_MAX
from cogwork.router.mesh.effects import (
    Close,
    Effects,
    NeighbourDown,
    NeighbourUp,
    Reason,
    Severity,
)
from cogwork.router.mesh.link import Event, Link, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.router.mesh.messages import Hello
    from cogwork.router.mesh.own import Own

__all__ = ("Neighbours",)

REPEAT_S = 60.0
"""For so long one thing is said once: who is refused dials again and again."""

OUTCOME_MAX = 100
"""So many different things are said in that time: strangers may dial under ever new names."""

TOGETHER_HELLOS = 0.1
"""By so much of the time between two hellos one may come early."""

_LOUD = frozenset(
    {
        Reason.CLUSTER,
        Reason.DUPLICATE_ID,
        Reason.SELF,
        Reason.VERSION,
        Reason.VIRTUAL_HOSTS,
    }
)


class Neighbours:
    """The links of one container.

    Attributes:
        links: By number.
        active: The link that is used, by neighbour.
        digest: What our hellos say of what we know.
        is_changed: The neighbours or their costs have changed; whoever advertises it resets it.
    """

    def __init__(self, own: Own, effects: Effects) -> None:
        self.links: dict[int, Link] = {}
        self.active: dict[str, Link] = {}
        self.digest = 0
        self.is_changed = False
        self._own = own
        self._effects = effects
        self._said_s: dict[str, float] = {}
        self._wake_s = inf

    @property
    def advertised(self) -> tuple[tuple[str, int], ...]:
        """The neighbours that are up, with costs, sorted by id."""
        return tuple((peer, self.active[peer].effective_cost) for peer in sorted(self.active))

    def connect(self, number: int, *, is_dialled: bool, cost: int, now_s: float) -> None:
        """Take a new connection, and says hello on it."""
        assert number not in self.links
        _check_cost(cost)
        interval_s = self._own.timers.hello_s
        link = Link(number, is_dialled=is_dialled, cost=cost, interval_s=interval_s, now_s=now_s)
        link.step(Event.CONNECTED)
        self.links[number] = link
        self._say_hello(link, now_s)
        self._wake_for(link)

    def disconnect(self, number: int, now_s: float) -> None:
        """Take note that a connection has gone."""
        link = self.links.pop(number, None)
        if link is not None:
            link.step(Event.CLOSED)
            self._choose(link.peer, now_s)

    def set_cost(self, number: int, cost: int) -> None:
        """Set what is configured for a link; 0 for no opinion."""
        _check_cost(cost)
        link = self.links.get(number)
        if link is not None and link.cost != cost:
            link.cost = cost
            link.hello_due_s = -inf
            self._wake_for(link)
            self.is_changed = True

    def hear(self, link: Link, hello: Hello, now_s: float) -> None:
        """Take a hello in; one from an earlier life of the neighbour changes nothing."""
        if hello.incarnation < link.incarnation and hello.id == link.peer:
            return
        refusal = refusal_of(hello, link, self._own, self._others(link, hello.id))
        if refusal is None and hello.id not in self.active and len(self.active) >= NEIGHBOURS_MAX:
            text = f"container {self._own.id} has {NEIGHBOURS_MAX} neighbours, which is the limit"
            refusal = Refusal(Reason.FULL, text)
        if refusal is not None:
            self.refuse(link, refusal, now_s)
            return
        self._replace_earlier_lives(link, hello, now_s)
        before = (link.state, link.incarnation, link.effective_cost)
        link.hear(hello, self._own, now_s)
        if (link.state, link.incarnation) != before[:2]:
            self._say_hello(link, now_s)
        is_lost = before[0] is State.TWO_WAY and link.state is not State.TWO_WAY
        if is_lost and not link.offences.admits(1, now_s):
            text = f"container {hello.id} repeatedly reports that it does not hear {self._own.id}"
            self.refuse(link, Refusal(Reason.FLOOD, text), now_s)
            return
        self._wake_for(link)
        self.is_changed |= link.effective_cost != before[2]
        self._choose(link.peer, now_s)

    def refuse(self, link: Link, refusal: Refusal, now_s: float) -> None:
        """Close a link, and use it no longer."""
        if link.state is State.REFUSED:
            return
        link.step(Event.REFUSE)
        reason, description = refusal
        self._effects.add(Close(link.number, reason, description))
        if reason is not Reason.DUPLICATE_LINK:
            self._say(reason, f"{reason}: {description}", now_s)
        self._choose(link.peer, now_s)

    def tick(self, now_s: float) -> None:
        """Say hello where it is time, and give up who was silent for too long.

        A hello that is due soon goes out with the others, so that few ticks serve many links.
        """
        soon_s = now_s + TOGETHER_HELLOS * self._own.timers.hello_s
        for link in list(self.links.values()):
            if link.state is State.REFUSED:
                continue
            if now_s >= self._dead_at_s(link):
                name = f"container {link.peer}" if link.peer else "the other end"
                text = f"{name} was silent for {now_s - link.heard_s:.1f} s"
                self.refuse(link, Refusal(Reason.DEAD, text), now_s)
            elif soon_s >= link.hello_due_s:
                self._say_hello(link, now_s)
        self._wake_s = inf
        for link in self.links.values():
            if link.state is not State.REFUSED:
                self._wake_for(link)

    def wake_s(self) -> float:
        """Return when `tick` is needed next; it may be too early, not too late."""
        return self._wake_s

    def restart(self, now_s: float) -> None:
        """Tell all neighbours that this container has a new incarnation."""
        for link in self.links.values():
            if link.state is not State.REFUSED:
                self._say_hello(link, now_s)

    def _say(self, reason: Reason, text: str, now_s: float) -> None:
        """Report, where neither that was reported just before, nor very much else."""
        self._said_s = {each: at for each, at in self._said_s.items() if now_s - at < REPEAT_S}
        if text not in self._said_s and len(self._said_s) < OUTCOME_MAX:
            self._said_s[text] = now_s
            severity = Severity.ERROR if reason in _LOUD else Severity.WARNING
            self._effects.report(severity, text)

    def _wake_for(self, link: Link) -> None:
        self._wake_s = min(self._wake_s, link.hello_due_s, self._dead_at_s(link))

    def _dead_at_s(self, link: Link) -> float:
        return link.heard_s + link.interval_s * self._own.timers.dead_hellos

    def _say_hello(self, link: Link, now_s: float) -> None:
        link.hello_due_s = now_s + self._own.timers.hello_s
        hello = self._own.hello()
        hello.heard = link.incarnation
        hello.connection = link.connection if link.is_dialled else 0
        hello.cost = link.cost
        hello.digest = self.digest
        hello.figures = self._own.figures._replace(peers=len(self.active))
        self._effects.send(link.number, hello)

    def _others(self, link: Link, peer: str) -> Iterator[Link]:
        for other in self.links.values():
            if other is not link and other.peer == peer and other.state is not State.REFUSED:
                yield other

    def _replace_earlier_lives(self, link: Link, hello: Hello, now_s: float) -> None:
        for other in list(self._others(link, hello.id)):
            if other.incarnation < hello.incarnation:
                text = f"container {hello.id} has a later incarnation on another link"
                self.refuse(other, Refusal(Reason.RESTARTED, text), now_s)

    def _choose(self, peer: str, now_s: float) -> None:
        """Decide which of the links to a neighbour is used, and close the others in time."""
        if not peer:
            return
        links = [
            link
            for link in self.links.values()
            if link.peer == peer and link.state is State.TWO_WAY
        ]
        best = min(links, key=lambda link: link.rank(self._own.id), default=None)
        before = self.active.get(peer)
        if best is not before:
            self._use(peer, best)
        for link in links:
            if best is not None and link is not best and best.is_proven_after(link):
                text = f"link {best.number} leads to the same container {peer} and is kept"
                self.refuse(link, Refusal(Reason.DUPLICATE_LINK, text), now_s)

    def _use(self, peer: str, link: Link | None) -> None:
        self.is_changed = True
        if link is None:
            del self.active[peer]
            self._effects.add(NeighbourDown(peer))
        else:
            self.active[peer] = link
            self._effects.add(NeighbourUp(peer, link.number))


def _check_cost(cost: int) -> None:
    if not 0 <= cost <= COST_MAX:
        raise ValueError(f"a link costs 1 to {COST_MAX}, or 0 for no opinion, not {cost}")

"""A container's view of the mesh: events and the time go in, effects come out.

Theory of operation. Each link in use has an adjacency; what it must be told, and has not yet
acknowledged, stands there. Three floods build on that: who is whose neighbour (`flooding`), what
each wants (`interest_flooding`), both compared by summaries. From the first follow the ways
(`routes`). An event changes these parts; `_settle` then draws the consequences, in one order, at
the end of every event, and hands over all effects.

What the container does, with its own clock as `now_s`:

- it makes the `Mesh`, and calls `start` once;
- `on_connected` when a control connection stands, dialled or accepted; `on_message` with each
  message on it; `on_closed` when it is gone, also where a `Close` asked for that;
- `tick` at `wake_s`, which it reads after every event;
- `subscribe` and `unsubscribe` for each subscription to a multicast address, `set_interest` when an
  anycast address gets or loses its ends and when a queue's consumers or backlog change;
- `set_figures`, `set_hosts` and `set_cost` when these change; `leave` before it stops, and then it
  waits for a moment, so that the others hear of it;
- it does the effects that each event returns, in order, and asks `next_hop` anew after
  `PathsChanged`.

A neighbour is dialled again some time after its connection has gone, unless the reason was
`DUPLICATE_LINK`: then when its neighbour is down.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cogwork.amqp.exceptions import ProtocolError
from cogwork.router.mesh.adjacency import Adjacency, Retry
from cogwork.router.mesh.admission import Refusal
from cogwork.router.mesh.clock import SteadyClock
from cogwork.router.mesh.database import Database
from cogwork.router.mesh.effects import Effect, Effects, Hosts, PathsChanged, Reason
from cogwork.router.mesh.flooding import Flooding
from cogwork.router.mesh.interest_flooding import InterestFlooding
from cogwork.router.mesh.link import Link, State
from cogwork.router.mesh.messages import (
    Acknowledgement,
    Advertisement,
    Hello,
    Interest,
    InterestDelta,
    InterestKind,
    InterestRequest,
    InterestSnapshot,
    RedirectHint,
    Summary,
    Version,
)
from cogwork.router.mesh.meter import tokens_of
from cogwork.router.mesh.neighbours import Neighbours
from cogwork.router.mesh.routes import Routes
from cogwork.router.mesh.throttle import Throttle
from cogwork.router.mesh.view import view_of
from cogwork.router.mesh.wire import check, decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.router.mesh.messages import Figures, Message
    from cogwork.router.mesh.own import Own

__all__ = ("Mesh",)

PATIENCE_HELLOS = 3
"""For so many hellos two neighbours may know different things before they send summaries."""

PATIENCE_MAX_S = 60.0

SUMMARY_PAUSE_S = 0.2
"""Between two summaries of a neighbour: to answer one means to look at all there is."""


class Mesh:
    """The mesh, as one container sees it.

    Attributes:
        own: This container.
        neighbours: Its links.
        database: Who is whose neighbour.
        routes: The ways from here.
        interests: Who wants what.
    """

    def __init__(self, own: Own, now_s: float) -> None:
        """Prepare a container's part in the mesh; `own` belongs to it from now on."""
        self.own = own
        self._clock = SteadyClock(now_s, own.timers.hello_s / 2)
        self._wake_s = now_s
        self._effects = Effects()
        self._adjacencies: dict[str, Adjacency] = {}
        self.neighbours = Neighbours(own, self._effects)
        self.database = Database(own.timers.max_age_s)
        self.routes = Routes(own.id, self.database)
        shared = (own, self.database, self._adjacencies, self._effects)
        self._flooding = Flooding(*shared, self.routes.is_reachable)
        self.interests = InterestFlooding(*shared)
        self._paths = Throttle(own.timers.paths_hold_s)
        self._incarnation = own.incarnation
        self._hosts: tuple[str, ...] = ()
        self._has_left = False
        self._look_s = now_s
        self._touched: set[str] = set()
        self._checksums: dict[str, int] = {}
        self._flooding.advertise((), now_s)

    # Events. Each returns what is to be done.

    def start(self, now_s: float) -> list[Effect]:
        """Begin; link may come before or afterwards."""
        now_s = self._clock.read(now_s, self._wake_s)
        return self._settle(now_s)

    def on_connected(
        self, link: int, now_s: float, *, is_dialled: bool, cost: int = 0
    ) -> list[Effect]:
        """Take a new link.

        Args:
            link: A number that no other link has or had, higher for later ones.
            now_s: The time.
            is_dialled: Whether this end dialled.
            cost: As configured; 0 for no opinion.

        Raises:
            ValueError: The cost is out of range.
        """
        now_s = self._clock.read(now_s, self._wake_s)
        self.neighbours.connect(link, is_dialled=is_dialled, cost=cost, now_s=now_s)
        return self._settle(now_s)

    def on_closed(self, link: int, now_s: float) -> list[Effect]:
        """Take note that a link has gone; one that is not known is none."""
        now_s = self._clock.read(now_s, self._wake_s)
        self.neighbours.disconnect(link, now_s)
        return self._settle(now_s)

    def on_message(self, link: int, data: bytes, now_s: float) -> list[Effect]:
        """Take a message from the other end of a link."""
        now_s = self._clock.read(now_s, self._wake_s)
        found = self.neighbours.links.get(link)
        if found is None or found.state is State.REFUSED:
            return []
        refusal = self._handle(found, data, now_s)
        if refusal is not None:
            self.neighbours.refuse(found, refusal, now_s)
        return self._settle(now_s)

    def on_octets(self, link: int, now_s: float) -> None:
        """Take note that something comes on a link: what is large may keep hellos waiting."""
        found = self.neighbours.links.get(link)
        if found is not None and found.peer:  # who never says hello is never heard
            found.heard_s = self._clock.read(now_s, self._wake_s)

    def tick(self, now_s: float) -> list[Effect]:
        """Let time pass."""
        now_s = self._clock.read(now_s, self._wake_s)
        if now_s >= self._look_s:
            self._look_s = now_s + self.own.timers.hello_s
            self._flooding.expire(now_s)
            self._follow_database(now_s)
            self._refresh_digest()
            for adjacency in self._adjacencies.values():
                self._compare(adjacency, now_s)
        if now_s >= self.neighbours.wake_s():
            self._refresh_digest()
            self.neighbours.tick(now_s)
        for adjacency in self._adjacencies.values():
            if now_s >= adjacency.due_s:
                self._repeat(adjacency, now_s)
        return self._settle(now_s)

    def subscribe(self, virtual_host: str, pattern: str, now_s: float) -> list[Effect]:
        """Count one more subscription to a pattern of a topic.

        Raises:
            ValueError: The pattern, or the name of the virtual host, is too long to be told.
        """
        now_s = self._clock.read(now_s, self._wake_s)
        self.interests.local.subscribe(virtual_host, pattern, now_s)
        return self._settle(now_s)

    def unsubscribe(self, virtual_host: str, pattern: str, now_s: float) -> list[Effect]:
        """Count one subscription less."""
        now_s = self._clock.read(now_s, self._wake_s)
        self.interests.local.unsubscribe(virtual_host, pattern, now_s)
        return self._settle(now_s)

    def set_interest(self, interest: Interest, now_s: float) -> list[Effect]:
        """Set the figures of an anycast address or a queue; nothing but zeros removes it.

        Raises:
            ValueError: The address, or the name of the virtual host, is too long to be told.
        """
        now_s = self._clock.read(now_s, self._wake_s)
        table = self.interests.own_table
        assert table is not None, "start comes first"
        assert interest.kind != InterestKind.TOPIC, "topics are counted by subscription"
        self.interests.local.set_figures(interest, table, now_s)
        return self._settle(now_s)

    def set_cost(self, link: int, cost: int, now_s: float) -> list[Effect]:
        """Set what is configured for a link; 0 for no opinion.

        Raises:
            ValueError: The cost is out of range.
        """
        now_s = self._clock.read(now_s, self._wake_s)
        self.neighbours.set_cost(link, cost)
        return self._settle(now_s)

    def set_figures(self, figures: Figures) -> None:
        """Set what the next hellos say of this container."""
        self.own.figures = figures

    def set_hosts(self, hosts: tuple[str, ...], now_s: float) -> list[Effect]:
        """Tell the neighbours where clients may be sent to; none: nowhere.

        Raises:
            ValueError: These are too many, or too long.
        """
        check(RedirectHint(hosts=hosts))
        now_s = self._clock.read(now_s, self._wake_s)
        self._hosts = hosts
        for adjacency in self._adjacencies.values():
            self._effects.send(adjacency.link.number, RedirectHint(hosts=hosts))
        return self._settle(now_s)

    def leave(self, now_s: float) -> list[Effect]:
        """Return good-bye: advertise no neighbours, so that nobody comes this way any more."""
        now_s = self._clock.read(now_s, self._wake_s)
        self._has_left = True
        self._flooding.advertise((), now_s)
        return self._settle(now_s)

    # Questions. They change nothing.

    @property
    def wake_s(self) -> float:
        """When `tick` is needed next."""
        return self._clock.to_container(self._wake_s)

    def next_hop(self, container: str) -> str | None:
        """Return the neighbour to go by to a container; None where it cannot be reached."""
        return self.routes.next_hops.get(container)

    def lost_for(self, hold_s: float, now_s: float) -> set[str]:
        """Return the containers that have been out of reach for longer than `hold_s`."""
        since_s = self._clock.peek(now_s) - hold_s
        unreachable_s = self.routes.unreachable_since_s
        return {container for container, at_s in unreachable_s.items() if at_s < since_s}

    def known_for_s(self, container: str, now_s: float) -> float:
        """Return for how long a container has been known, this time; 0 where it is not."""
        record = self.database.records.get(container)
        return 0.0 if record is None else max(0.0, self._clock.peek(now_s) - record.known_s)

    def life_of(self, container: str) -> int:
        """Return the incarnation that a container began its present life with; 0 for unknown."""
        if container == self.own.id:
            return self.own.life
        record = self.database.records.get(container)
        return (
            0 if record is None else record.advertisement.life or record.advertisement.incarnation
        )

    def snapshot(self, now_s: float) -> dict[str, object]:
        """Return what `cogwork mesh` shows, in plain values."""
        return view_of(self, self._clock.peek(now_s))

    # What messages do.

    def _handle(self, link: Link, data: bytes, now_s: float) -> Refusal | None:
        """Act on a message; return why its sender is cut off, if it is."""
        name = f"container {link.peer}" if link.peer else "the other end"
        if not link.meter.admits(tokens_of(len(data)), now_s):
            return Refusal(Reason.FLOOD, f"{name} sends more than it may")
        try:
            message = decode(data)
        except ProtocolError as error:
            return Refusal(Reason.MALFORMED, f"{name} sends what is no message: {error}")
        if isinstance(message, Hello):
            self.neighbours.hear(link, message, now_s)
            return None
        if link.peer:  # who never says hello is never heard
            link.heard_s = now_s
        adjacency = self._adjacencies.get(link.peer)
        if message is None or adjacency is None or adjacency.link is not link:
            return None
        if isinstance(message, Advertisement | InterestDelta | InterestSnapshot):
            self._touched.add(message.origin)
        if not self._ACTIONS[type(message)](self, adjacency, message, now_s):
            return Refusal(Reason.TOO_MUCH, f"{name} sends more than a mesh can have")
        return None

    def _on_advertisement(self, sender: Adjacency, advert: Advertisement, now_s: float) -> bool:
        """Take one; in a mesh that has grown too large, a few are refused with nobody to blame."""
        is_within_bounds = self._flooding.take(sender, advert, now_s)
        return is_within_bounds or sender.link.offences.admits(1, now_s)

    def _on_delta(self, sender: Adjacency, delta: InterestDelta, now_s: float) -> bool:
        return self.interests.take_delta(sender, delta, now_s)

    def _on_snapshot(self, sender: Adjacency, part: InterestSnapshot, now_s: float) -> bool:
        return self.interests.take_snapshot(sender, part, now_s)

    def _on_request(self, sender: Adjacency, request: InterestRequest, now_s: float) -> bool:
        self.interests.take_request(sender, request, now_s)
        return True

    def _on_acknowledgement(self, sender: Adjacency, ack: Acknowledgement, _now_s: float) -> bool:
        if ack.summary and ack.summary == sender.summary:
            sender.summary_retry = None
        self._flooding.acknowledged(sender, ack.advertisements)
        self.interests.acknowledged(sender, ack.interests)
        return True

    def _on_summary(self, sender: Adjacency, summary: Summary, now_s: float) -> bool:
        """Send what a neighbour lacks; a summary too soon after the last one is passed over."""
        if now_s - sender.summed_s < SUMMARY_PAUSE_S:
            return True
        sender.summed_s = now_s
        sender.summary_ack = summary.number
        sender.owe_ack(now_s, self.own.timers.ack_delay_s)
        theirs = {version.origin: version for version in summary.versions}
        for origin in self.database.records:
            if self._is_news(origin, theirs.get(origin)):
                self._flooding.send(sender, origin, now_s)
        self.interests.summed(sender, theirs, now_s)
        return True

    def _on_hint(self, sender: Adjacency, hint: RedirectHint, _now_s: float) -> bool:
        self._effects.add(Hosts(sender.link.peer, hint.hosts))
        return True

    _ACTIONS: dict[type[Message], Callable[..., bool]] = {  # noqa: RUF012  # a table
        Advertisement: _on_advertisement,
        InterestDelta: _on_delta,
        InterestSnapshot: _on_snapshot,
        InterestRequest: _on_request,
        Acknowledgement: _on_acknowledgement,
        Summary: _on_summary,
        RedirectHint: _on_hint,
    }

    def _is_news(self, origin: str, theirs: Version | None) -> bool:
        """Return whether what is known here of a container would be news to a neighbour."""
        if theirs is None:
            return True
        ours = self._version(origin)
        if ours[:4] == theirs[:4]:
            return False
        return theirs.incarnation <= ours.incarnation

    # Consequences.

    def _settle(self, now_s: float) -> list[Effect]:
        """Draw the consequences of an event, and return what is to be done."""
        self._follow_neighbours(now_s)
        if self._flooding.originate(now_s):
            self._touched.add(self.own.id)
        self._follow_database(now_s)
        if self._incarnation != self.own.incarnation:
            self._incarnation = self.own.incarnation
            self.neighbours.restart(now_s)
            self.interests.restart(now_s)
        if self._paths.fire(now_s):
            changes = self.routes.compute(now_s)
            if changes is not None:
                self._effects.add(PathsChanged(changes))
        if self.interests.tell(now_s):
            self._touched.add(self.own.id)
        for adjacency in self._adjacencies.values():
            if now_s >= adjacency.acks_due_s:
                self._acknowledge(adjacency)
        self._wake_s = self._next_wake_s()
        return self._effects.take()

    def _next_wake_s(self) -> float:
        adjacent = min(
            (min(each.due_s, each.acks_due_s) for each in self._adjacencies.values()), default=inf
        )
        parts = (self.neighbours.wake_s(), self._flooding.wake_s(), self.interests.wake_s())
        return min(adjacent, self._paths.due_s, self._look_s, *parts)

    def _follow_neighbours(self, now_s: float) -> None:
        """Open and closes adjacencies as links come into use and go."""
        if not self.neighbours.is_changed:
            return
        self.neighbours.is_changed = False
        active = self.neighbours.active
        for peer in [each for each in self._adjacencies if each not in active]:
            del self._adjacencies[peer]
        for peer, link in active.items():
            known = self._adjacencies.get(peer)
            if known is None or known.link is not link:
                self._adjacencies[peer] = Adjacency(link)
                self._summarize(self._adjacencies[peer], now_s)
        if not self._has_left:
            self._flooding.advertise(self.neighbours.advertised, now_s)

    def _follow_database(self, now_s: float) -> None:
        """Forget what belongs to containers, or to lives of them, that are no longer known."""
        removed, self.database.removed = self.database.removed, []
        self._touched.update(removed)
        for origin in removed:
            self.interests.forget(origin)
            for adjacency in self._adjacencies.values():
                adjacency.forget(origin)
        if self._flooding.changed:
            self._paths.request(now_s)
        for origin in self._flooding.changed:
            table = self.interests.table.origins.get(origin)
            is_past = table and table.incarnation != self.database.incarnation(origin)
            if is_past and origin != self.own.id:
                self.interests.forget(origin)
        self._flooding.changed.clear()

    def _repeat(self, adjacency: Adjacency, now_s: float) -> None:
        """Send again what a neighbour did not acknowledge."""
        retry = adjacency.summary_retry
        if retry is not None and now_s >= retry.due_s:
            self._summarize(adjacency, now_s)
            retry.again(now_s)
            adjacency.summary_retry = retry
        self._flooding.repeat(adjacency, now_s)
        self.interests.tick(adjacency, now_s)
        adjacency.recompute_due()

    def _compare(self, adjacency: Adjacency, now_s: float) -> None:
        """Send a summary where a neighbour has known something different for long."""
        if adjacency.link.digest == self.neighbours.digest:
            adjacency.compared_s = now_s
            adjacency.patience_s = PATIENCE_HELLOS * adjacency.link.interval_s
        elif now_s - adjacency.compared_s > adjacency.patience_s:
            adjacency.patience_s = min(2 * adjacency.patience_s, PATIENCE_MAX_S)
            self._summarize(adjacency, now_s)

    def _acknowledge(self, adjacency: Adjacency) -> None:
        """Send the acknowledgements that wait."""
        self._effects.send(
            adjacency.link.number,
            Acknowledgement(
                summary=adjacency.summary_ack,
                advertisements=tuple(adjacency.acks.values()),
                interests=tuple(adjacency.interest_acks.values()),
            ),
        )
        adjacency.summary_ack = 0
        adjacency.acks.clear()
        adjacency.interest_acks.clear()
        adjacency.acks_due_s = inf

    def _summarize(self, adjacency: Adjacency, now_s: float) -> None:
        adjacency.summary += 1
        adjacency.compared_s = now_s
        adjacency.patience_s = adjacency.patience_s or PATIENCE_HELLOS * adjacency.link.interval_s
        adjacency.summary_retry = Retry(self.own.timers, now_s)
        adjacency.expect(adjacency.summary_retry)
        versions = tuple(self._version(origin) for origin in self.database.records)
        number = adjacency.link.number
        self._effects.send(number, Summary(number=adjacency.summary, versions=versions))
        if self._hosts:
            self._effects.send(number, RedirectHint(hosts=self._hosts))

    def _version(self, origin: str) -> Version:
        record = self.database.records[origin]
        known = record.advertisement
        interest = self.interests.version(origin)
        return Version(origin, known.incarnation, known.sequence, record.content, *interest)

    def _refresh_digest(self) -> None:
        """Have the next hellos say a checksum of all that is known."""
        digest = self.neighbours.digest
        for origin in self._touched:
            digest ^= self._checksums.pop(origin, 0)
            if origin in self.database.records:
                checksum = self._version(origin).checksum()
                digest ^= checksum
                self._checksums[origin] = checksum
        self._touched.clear()
        self.neighbours.digest = digest
